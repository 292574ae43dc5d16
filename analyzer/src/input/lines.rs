//! Lines of Python code objects, from the tables that interpreters keep.

/// The line at byte `at` of the instructions, from a table of locations (CPython 3.11 and later,
/// `Objects/locations.md` in its sources). `None` when that instruction has no line, or the table
/// does not reach it or is damaged.
#[must_use]
pub fn line_at(version: u64, table: &[u8], first_line: u64, at: u64) -> Option<u64> {
    if version < 0x30b {
        return None;
    }
    let mut bytes = Bytes(table);
    let mut line = i64::try_from(first_line).ok()?;
    let mut end: u64 = 0;
    loop {
        // 1, four bits of code, three bits of length in instructions of two bytes, less one.
        let first = bytes.next()?;
        let code = first >> 3 & 15;
        end += (u64::from(first & 7) + 1) * 2;
        let (delta, columns) = match code {
            0..=9 => (0, 1),
            10..=12 => (i64::from(code) - 10, 2),
            13 => (bytes.signed()?, 0),
            14 => {
                let delta = bytes.signed()?;
                for _ in 0..3 {
                    bytes.number()?;
                }
                (delta, 0)
            }
            _ => (0, 0),
        };
        for _ in 0..columns {
            bytes.next()?;
        }
        line = line.checked_add(delta)?;
        if at < end {
            return u64::try_from(line).ok().filter(|_| code != 15);
        }
    }
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// Six bits a byte, the lowest first; bit 6 says that more follow.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..60).step_by(6) {
            let byte = self.next()?;
            value |= u64::from(byte & 63) << shift;
            if byte & 64 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A number with its sign in the lowest bit.
    fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        let size = i64::try_from(value >> 1).ok()?;
        Some(if value & 1 == 0 { size } else { -size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `co_linetable` and `co_lines()` of one function under CPython 3.11: a generator, nested
    /// `with`, a loop, `try … finally`, and 300 empty lines.
    const TABLE: &str = "f88000e00c0d8045f002011223f000011223d81b21f003011223f100011223f400011223f0000705\
        0ef00007050e8805e50d119025895b8c5bf00005090e9841dd10149055910b940bf00305090ed81f\
        20d80c11d81015d812139726922691289428f10301111bf103030d0e8845f00505090ef00005090e\
        f00005090ef10005090ef40005090ef00005090ef00005090ef00005090ef00005090ef00005090e\
        f00005090ef8f8f8f00005090ef00005090ef00005090ef00005090ef00005090ef00005090ef000\
        05090ef10005090ef40005090ef00005090ef00005090ef00005090ef00005090ef00005090ef000\
        05090ef8f8f8f00005090ef00005090ef00005090ef00005090ef8f00c090512dd080cd80c11f002\
        03110ef00003110ef00003110ef00003110ef00506090af10006090af40006090af00006090af010\
        000d128845f888458809880988098809f05a09000c0d8831";
    const LINES: &[(u64, u64, Option<u64>)] = &[
        (0, 2, None),
        (2, 4, Some(1)),
        (4, 8, Some(3)),
        (8, 12, Some(4)),
        (12, 14, Some(5)),
        (14, 36, Some(4)),
        (36, 68, Some(6)),
        (68, 96, Some(7)),
        (96, 98, Some(6)),
        (98, 100, Some(7)),
        (100, 102, Some(8)),
        (102, 104, Some(9)),
        (104, 142, Some(10)),
        (142, 146, Some(9)),
        (146, 152, Some(8)),
        (152, 184, Some(6)),
        (184, 190, None),
        (190, 230, Some(6)),
        (230, 236, None),
        (236, 244, Some(6)),
        (244, 246, None),
        (246, 248, Some(12)),
        (248, 260, Some(13)),
        (260, 262, Some(14)),
        (262, 270, Some(15)),
        (270, 288, Some(13)),
        (288, 292, Some(21)),
        (292, 294, None),
        (294, 304, Some(21)),
        (304, 308, Some(322)),
    ];

    fn table() -> Vec<u8> {
        let digits: Vec<u8> =
            TABLE.chars().map(|c| u8::try_from(c.to_digit(16).unwrap()).unwrap()).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    #[test]
    fn every_instruction_has_the_line_that_the_interpreter_says() {
        for &(start, end, line) in LINES {
            for at in start..end {
                assert_eq!(line_at(0x30b, &table(), 1, at), line, "at {at}");
            }
        }
        let (_, end, _) = *LINES.last().unwrap();
        assert_eq!(line_at(0x30b, &table(), 1, end), None, "behind the end");
        assert_eq!(line_at(0x309, &table(), 1, 4), None, "another kind of table");
    }

    #[test]
    fn a_damaged_table_is_no_line_and_no_crash() {
        let whole = table();
        for length in 0..whole.len() {
            let _ = line_at(0x30c, &whole[..length], u64::MAX, 4);
            let mut other = whole.clone();
            other[length] ^= 0xff;
            let _ = line_at(0x30c, &other, i64::MAX as u64, 300);
        }
        assert_eq!(line_at(0x30b, &[0xff; 64], 1, 10_000), None);
    }
}
