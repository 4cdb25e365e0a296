//! The header of a `.npy` file: enough of it to find the edges in the file.

use bytemuck::Pod;

use super::decode::IdType;

/// The first bytes of every `.npy` file.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// The header never needs more than this. Larger claims are refused.
pub(crate) const LONGEST_HEADER: usize = 1 << 16;

/// Where the data of an integer array are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// First byte of the data.
    pub data_offset: u64,
    /// Type of the ids.
    pub id_type: IdType,
    /// Whether the ids are big-endian.
    pub swapped: bool,
    /// Column-major order.
    pub fortran: bool,
    /// Length of each axis.
    pub shape: Vec<u64>,
}

/// Where the data of an array of any type are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnyHeader {
    /// First byte of the data.
    pub data_offset: u64,
    /// Type of the items, as numpy spells it: `<f4`.
    pub descr: String,
    /// Column-major order.
    pub fortran: bool,
    /// Length of each axis.
    pub shape: Vec<u64>,
}

/// Reads the header from the first bytes of a file of ids. The error says what is wrong and the remedy.
pub(crate) fn parse(head: &[u8]) -> Result<Header, String> {
    let AnyHeader { data_offset, descr, fortran, shape } = parse_any(head)?;
    let (id_type, swapped) = id_type(&descr)?;
    Ok(Header { data_offset, id_type, swapped, fortran, shape })
}

/// The same for items of any type that one word names.
pub(crate) fn parse_any(head: &[u8]) -> Result<AnyHeader, String> {
    let rest = head.strip_prefix(MAGIC).ok_or("no .npy magic at its start")?;
    let (length_bytes, version) = match rest {
        [1, _, ..] => (2, 1),
        [2 | 3, _, ..] => (4, 2),
        _ => return Err("unknown .npy version. Save it again with numpy.save".into()),
    };
    let length = rest.get(2..2 + length_bytes).ok_or("the .npy header is cut off")?;
    let length = length.iter().rev().fold(0_usize, |value, &byte| value << 8 | usize::from(byte));
    let start = MAGIC.len() + 2 + length_bytes;
    if length > LONGEST_HEADER {
        return Err(format!("the .npy header (version {version}) claims {length} bytes"));
    }
    let text = head.get(start..start + length).ok_or("the .npy header is cut off")?;
    let text = std::str::from_utf8(text).map_err(|_| "the .npy header is not text")?;

    let descr = string_value(text, "descr").ok_or("the .npy header has no descr")?.to_owned();
    let fortran = match value(text, "fortran_order") {
        Some(flag) if flag.starts_with("True") => true,
        Some(flag) if flag.starts_with("False") => false,
        _ => return Err("the .npy header has no fortran_order".into()),
    };
    let shape = value(text, "shape")
        .and_then(|text| text.strip_prefix('(')?.split_once(')'))
        .ok_or("the .npy header has no shape")?
        .0;
    let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
    let shape = sizes
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| format!("the .npy header has the shape ({shape})"))?;
    Ok(AnyHeader { data_offset: (start + length) as u64, descr, fortran, shape })
}

fn id_type(descr: &str) -> Result<(IdType, bool), String> {
    let (order, kind) = descr.split_at_checked(1).unwrap_or(("", descr));
    let id_type = match kind {
        "u4" => IdType::U32,
        "i4" => IdType::I32,
        "u8" => IdType::U64,
        "i8" => IdType::I64,
        _ => return Err(format!("dtype {descr}. Ids must be uint32, int32, uint64 or int64")),
    };
    match order {
        "<" | "=" => Ok((id_type, false)),
        ">" => Ok((id_type, true)),
        _ => Err(format!("dtype {descr}. Ids must be uint32, int32, uint64 or int64")),
    }
}

/// The text behind `'key':` of a Python dict literal.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let at = text.find(&format!("'{key}'"))? + key.len() + 2;
    Some(text[at..].trim_start().strip_prefix(':')?.trim_start())
}

fn string_value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    Some(value(text, key)?.strip_prefix('\'')?.split_once('\'')?.0)
}

/// A type of items in a `.npy` file.
pub trait Item: Pod {
    /// The type's name in the header.
    const DESCR: &'static str;
}

macro_rules! item {
    ($($type:ty => $descr:literal),*) => {
        $(impl Item for $type {
            const DESCR: &'static str = $descr;
        })*
    };
}
item!(u8 => "|u1", i16 => "<i2", i32 => "<i4", i64 => "<i8", u64 => "<u8");

/// The header of an array of these items.
pub fn header_of<T: Item>(items: &[T]) -> Vec<u8> {
    header(T::DESCR, &[items.len() as u64])
}

/// A header as `numpy.save` writes it (version 1.0, data aligned to 64 bytes) for a C-ordered array.
pub fn header(descr: &str, shape: &[u64]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", sizes.join(", "));
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    let padding = unpadded.next_multiple_of(64) - unpadded;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(((text.len() + padding + 1) as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(std::iter::repeat_n(b' ', padding));
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_write_we_read() {
        let bytes = header("<u4", &[7, 2]);
        assert_eq!(bytes.len() % 64, 0);
        let parsed = parse(&bytes).unwrap();
        assert_eq!(parsed.shape, [7, 2]);
        assert_eq!(parse(&header("<u4", &[7])).unwrap().shape, [7]);
        assert_eq!((parsed.id_type, parsed.swapped, parsed.fortran), (IdType::U32, false, false));
        assert_eq!(parsed.data_offset, bytes.len() as u64);
    }

    #[test]
    fn refusals_name_the_cause() {
        for (bytes, cause) in [
            (header("<f8", &[7, 2]), "dtype <f8"),
            (header("|O", &[7, 2]), "dtype |O"),
            (header("<u4", &[7, 2])[..20].to_vec(), "cut off"),
            (b"PK\x03\x04".to_vec(), "magic"),
        ] {
            let error = parse(&bytes).unwrap_err();
            assert!(error.contains(cause), "{error}");
        }
    }
}
