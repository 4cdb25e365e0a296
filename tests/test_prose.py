"""Rules of prose: each finds its bad sentences and no good ones, and the baseline says what is left."""

import prose
import pytest
from prose import COLUMNS, counted, hits_of, read_baseline, read_rules, shrunk, wrapped

RULES = read_rules()

SOURCES = {
    "docs": ("page.md", "{}\n"),
    "python": ("module.py", '"""{}"""\n'),
    "rust": ("module.rs", "//! {}\n"),
    "messages": ("module.rs", 'fn f() -> String {{ "one two three: {}".into() }}\n'),
}
"""A file with one text of each scope."""


def found(text, scope):
    name, source = SOURCES[scope]
    return [hit.rule for hit in hits_of(RULES, name, source.format(text))]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_finds_its_bad_sentences_and_no_good_ones(rule):
    scope = "rust" if "rust" in rule.scope else rule.scope[0]
    for text in rule.bad:
        assert rule.name in found(text.removeprefix("/// "), scope), text
    for text in rule.good:
        assert not found(text.removeprefix("/// "), scope), text
    assert rule.bad
    assert rule.good


@pytest.mark.parametrize(
    ("name", "source", "line"),
    [
        ("a.md", "# Parts\n\nOne entry in so\nmany.\n\n```\nso many\n```\n", 3),
        ("a.py", 'x = 1\n\n\ndef f():\n    """Return x.\n\n    Read that many rows.\n    """\n', 7),
        ("a.py", "x = 1  # so many\n", 1),
        ("a.py", "# First line,\n# and so many.\nx = '# so many'\n", 2),
        ("a.py", 'raise ValueError(\n    f"the part {p} has rows, "\n    f"and so many"\n)\n', 3),
        ("a.rs", "/// Rows.\n///\n/// So\n/// many.\nfn f() {}\n", 3),
        ("a.rs", "let quote = '\"'; // so many\n", 1),
        ("a.rs", 'let text = format!("a text of {} and \\\n    so many");\n', 2),
    ],
)
def test_a_hit_has_its_line(name, source, line):
    assert [(hit.line, hit.rule) for hit in hits_of(RULES, name, source)] == [(line, "so-many")]


def test_code_is_no_prose():
    assert not list(hits_of(RULES, "a.rs", 'const NAME: &str = "so many";\nlet so = many;\n'))
    assert not list(hits_of(RULES, "a.py", "so_many = 'so many'\n"))
    hidden = '#[cfg(test)]\nmod tests {\n    fn f() { assert!(g(), "a text of so many"); }\n}\n'
    assert not list(hits_of(RULES, "a.rs", hidden))


def test_the_baseline_is_exact_and_the_core_has_none():
    baseline = read_baseline()
    assert counted(prose.find(prose.files())) == baseline, "run `python tools/prose.py`"
    assert not [file for file in baseline if file.startswith("rust/")]


def test_long_comments_are_wrapped():
    long, code = " ".join(["word"] * 40), "/// >>> " + "x" * 120
    source = f"    /// - {long} `some code`\n    ///   more.\n    ///\n    /// Short.\n{code}\nlet x = 1; // {long}\n"
    item, *rest = wrapped(source).split("    ///\n")
    assert rest == ["    /// Short.\n" + f"{code}\nlet x = 1; // {long}\n"]
    lines = item.splitlines()
    assert [line[:10] for line in lines] == ["    /// - ", *["    ///   "] * (len(lines) - 1)]
    assert max(map(len, lines)) <= COLUMNS
    assert " ".join(line[10:] for line in lines) == f"{long} `some code` more."
    year = wrapped(f"/// {'word ' * 20}x 1996.\n")
    assert year.endswith("\n/// x 1996.\n")
    text = "".join(
        f"/// {line}\n" for line in ["```text", long, "```", f"| {long} |", "# " + long, "Notes", "-----"]
    )
    assert wrapped(text) == text


def test_the_baseline_only_shrinks():
    before = {"a.rs": {"so-many": 2}, "b.py": {"but-for": 1}}
    assert shrunk(before, {}) == {}
    renamed = {"c/a.rs": {"so-many": 2}, "b.py": {"but-for": 1}}
    assert shrunk(before, renamed) == renamed
    with pytest.raises(ValueError, match="so-many: 3 > 2"):
        shrunk(before, {"a.rs": {"so-many": 2}, "b.py": {"so-many": 1}})


def test_new_sentences_are_named_with_better_words(monkeypatch, capsys, tmp_path):
    (tmp_path / "README.md").write_text("# Parts\n\nReads so many rows. Ends.\n")
    (tmp_path / "baseline.json").write_text("{}\n")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "BASELINE", tmp_path / "baseline.json")
    assert prose.main([]) == 1
    assert "README.md:3: Reads so many rows.\n    so-many: name the number" in capsys.readouterr().out
    assert prose.main(["--shrink"]) == 1
    (tmp_path / "README.md").write_text("Reads `count` rows.\n")
    assert prose.main([]) == 0
    (tmp_path / "baseline.json").write_text('{"README.md": {"so-many": 1}}\n')
    assert prose.main([]) == 1
    assert "--shrink" in capsys.readouterr().out
    assert prose.main(["--shrink"]) == 0
    assert prose.main([]) == 0
