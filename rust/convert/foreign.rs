//! Text of formats that fastpart does not read: which one it is, by the line that opens it, and what reads
//! it.

use std::path::Path;

use crate::base::{Error, Result, shown};

/// Refuses text that opens as a format of graphs other than a list of edges. `head` is its beginning.
pub(super) fn check(head: &[u8], path: &Path) -> Result<()> {
    let mut lines = (1_u64..).zip(head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii));
    let Some((line, first)) = lines.find(|(_, line)| !line.is_empty()) else { return Ok(()) };
    let next = lines.map(|(_, line)| line).find(|line| !line.is_empty()).unwrap_or_default();
    match found(first, next, head, &shown(path).to_string()) {
        None => Ok(()),
        Some((name, remedy)) => {
            let what = format!("{name}, and no list of edges. {remedy}");
            Err(Error::Text { path: path.into(), line, column: 1, what })
        }
    }
}

/// The name of the format that begins with these lines, and the remedy.
fn found(first: &[u8], next: &[u8], head: &[u8], path: &str) -> Option<(&'static str, String)> {
    let networkx = |read: &str| format!("In Python: fp.open_graph(networkx.{read}(\"{path}\"))");
    let small = first.to_ascii_lowercase();
    let opens = |word: &str| small.starts_with(word.as_bytes());
    let words: Vec<&[u8]> = small.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let word = words.first().copied().unwrap_or_default();
    let brace = |bracket: u8| {
        first.ends_with(&[bracket]) || first.contains(&bracket) || next.first() == Some(&bracket)
    };
    let has =
        |text: &str| head.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()));
    Some(match word {
        b"graph" if brace(b'[') && words.len() < 3 => ("GML", networkx("read_gml")),
        b"graph[" => ("GML", networkx("read_gml")),
        b"creator" | b"version" if has("graph") && head.contains(&b'[') => ("GML", networkx("read_gml")),
        b"version" if has("https://git-lfs.github.com") => {
            ("a pointer of Git LFS", "Fetch the file itself: `git lfs pull`".into())
        }
        b"graph" | b"digraph" | b"strict" | b"graph{" | b"digraph{" if brace(b'{') => {
            ("DOT of Graphviz", networkx("nx_pydot.read_dot"))
        }
        b"*vertices" | b"*network" | b"*arcs" | b"*edges" => ("a network of Pajek", networkx("read_pajek")),
        b"leda.graph" => ("LEDA", networkx("read_leda")),
        _ if opens(">>graph6<<") => ("graph6", networkx("read_graph6")),
        _ if opens(">>sparse6<<") || first.starts_with(b":") && is_sparse6(first) => {
            ("sparse6", networkx("read_sparse6"))
        }
        _ if opens("%matrixmarket") => {
            ("Matrix Market whose first line begins with one %", one_percent(path))
        }
        _ if opens("<?xml") || opens("<") && (has("<graphml") || has("<gexf") || has("<html")) => {
            if has("<graphml") {
                ("GraphML", networkx("read_graphml"))
            } else if has("<gexf") {
                ("GEXF", networkx("read_gexf"))
            } else if has("<html") {
                ("a page of the web (HTML)", "Fetch the file that it links to".into())
            } else {
                ("XML", "Write the edges as text: two ids a line".into())
            }
        }
        b"<!doctype" => ("a page of the web (HTML)", "Fetch the file that it links to".into()),
        b"c" | b"p" if is_dimacs(head) => (
            "DIMACS",
            format!(
                "`awk '$1 == \"e\" || $1 == \"a\" {{print $2, $3}}' {path} > edges.txt` writes its edges"
            ),
        ),
        b"%" if words.get(1) == Some(&&b"bip"[..]) => (
            "a bipartite network of KONECT, whose two columns number vertices of two types",
            format!(
                "`awk 'BEGIN {{print \"source\\ttarget\"}} !/^%/ {{print \"a\" $1 \"\\tb\" $2}}' {path} > names.tsv` \
                 gives each type ids of its own"
            ),
        ),
        _ if first.starts_with(b"{") || first.starts_with(b"[") => json(first, has, path)?,
        _ => return None,
    })
}

/// The remedy for a Matrix Market file whose first line begins with one %.
pub(super) fn one_percent(path: &str) -> String {
    format!("It needs two, and the name x.mtx: `sed '1s/^%/%%/' {path} > fixed.mtx`")
}

/// JSON of several kinds.
fn json(first: &[u8], has: impl Fn(&str) -> bool, path: &str) -> Option<(&'static str, String)> {
    let load = format!("json.load(open(\"{path}\"))");
    let nodes = has("\"nodes\"") && (has("\"links\"") || has("\"edges\""));
    Some(if nodes || has("\"multigraph\"") && has("\"links\"") {
        let edges = if has("\"links\"") { "links" } else { "edges" };
        let read = format!("In Python: fp.open_graph(networkx.node_link_graph({load}, edges=\"{edges}\"))");
        ("node-link JSON", read)
    } else if has("\"adjacency\"") {
        ("adjacency JSON", format!("In Python: fp.open_graph(networkx.adjacency_graph({load}))"))
    } else if first.starts_with(b"{") && first.ends_with(b"}") {
        ("JSON, an object a line", format!("In Python: fp.open_graph(polars.read_ndjson(\"{path}\"))"))
    } else if first.starts_with(b"{") {
        ("JSON", "Write the edges as text: two ids a line".into())
    } else if has("{") {
        ("JSON", format!("In Python: fp.open_graph(polars.read_json(\"{path}\"))"))
    } else if has("[") && first.len() > 1 || first == b"[" {
        ("JSON", format!("In Python: fp.open_graph({load})"))
    } else {
        return None;
    })
}

/// Whether a line that begins with a colon holds nothing but the bytes of sparse6.
fn is_sparse6(line: &[u8]) -> bool {
    line.len() > 1 && line[1..].iter().all(|byte| (63..=126).contains(byte))
}

/// Whether the first line that is no comment (`c`) states the problem: `p edge 5 6`.
fn is_dimacs(head: &[u8]) -> bool {
    let mut lines = head
        .split(|&byte| byte == b'\n')
        .map(|line| line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect::<Vec<_>>());
    let problem = lines.find(|words| words.first().is_some_and(|&word| word != b"c"));
    problem.is_some_and(|words| {
        words.len() >= 4 && words[0] == b"p" && words[1].iter().all(u8::is_ascii_alphabetic)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_the_line_that_opens_them() {
        for (text, name, line) in [
            ("graph [\n  node [ id 0 ]\n]\n", "GML", 1),
            ("Creator \"x\"\ngraph\n[\n]\n", "GML", 1),
            ("\ngraph\n[\n]\n", "GML", 2),
            ("strict graph {\n 1 -- 2\n}\n", "DOT", 1),
            ("digraph G {\n", "DOT", 1),
            ("<?xml version='1.0'?>\n<graphml xmlns='x'>", "GraphML", 1),
            ("<gexf version='1.2'>\n", "GEXF", 1),
            ("<!DOCTYPE html>\n<html>", "HTML", 1),
            ("*Vertices 3\n1 \"a\"\n", "Pajek", 1),
            ("c a comment\np edge 3 2\ne 1 2\n", "DIMACS", 1),
            (">>graph6<<A_\n", "graph6", 1),
            (":Fa@x^\n", "sparse6", 1),
            ("%MatrixMarket matrix coordinate\n", "Matrix Market", 1),
            ("% bip unweighted\n1 1\n", "bipartite", 1),
            ("{\"directed\": false, \"nodes\": [], \"links\": []}", "node-link", 1),
            ("{\"source\": 1, \"target\": 2}\n{\"source\": 1}\n", "an object a line", 1),
            ("[[0, 1], [1, 2]]\n", "JSON", 1),
        ] {
            match check(text.as_bytes(), Path::new("x")) {
                Err(Error::Text { line: at, what, .. }) => {
                    assert!(what.contains(name) && at == line, "{text:?}: line {at}: {what}");
                }
                other => panic!("{text:?}: {other:?}"),
            }
        }
        for text in [
            "",
            "1 2\n",
            "graph,node\n1,2\n",
            "c d\n1 2\n",
            "version date\n1 2\n",
            "% sym\n1 2\n",
            ":START_ID,:END_ID\n",
        ] {
            check(text.as_bytes(), Path::new("x")).unwrap();
        }
    }
}
