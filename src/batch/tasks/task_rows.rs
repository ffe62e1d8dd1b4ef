//! The rows of a file of tasks: lines, the elements of a list, or the rows of a table.
//!
//! The input is bytes that may come slowly or without end. The output is one row at a time, as JSON text with its number, or the fault of
//! one row. Lines and tables are read only as far as they are needed, and a list is read whole. Nothing here knows what a task is.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read};

use serde_json::Value;
use serde_json::value::RawValue;

use super::task::LINE_BYTES_MAX;
use protocol::text::counted;

/// The longest list that is read, in bytes.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// The rows of a source.
pub(in crate::batch) enum Rows<R: Read> {
    /// A row on each line, with the number of the last one.
    Lines(BufReader<R>, u64),
    /// The elements of a list in JSON, with their places from 0.
    List(std::iter::Enumerate<std::vec::IntoIter<Box<RawValue>>>),
    /// The rows of a table, whose first line names the columns.
    Table(Vec<String>, csv::StringRecordsIntoIter<BufReader<R>>),
}

impl<R: Read> Rows<R> {
    /// Begins to read a source. A source that begins with `[` is a list.
    ///
    /// Returns the reason why the source has no rows.
    pub(in crate::batch) fn open(source: R, is_table: bool) -> std::io::Result<Self> {
        let mut source = BufReader::with_capacity(1 << 16, source);
        if is_table {
            return read_table(source);
        }
        let begins = source.fill_buf()?;
        let begins = begins.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(begins);
        if begins.trim_ascii_start().first() != Some(&b'[') {
            return Ok(Self::Lines(source, 0));
        }
        read_list(source)
    }

    /// Returns the next row and its number, from 1; `None` at the end. The number is that of the line, or the place in a list.
    ///
    /// Returns the error that keeps the rest from being read.
    pub(in crate::batch) fn next(&mut self) -> std::io::Result<Option<(u64, Result<String, String>)>> {
        match self {
            Self::Lines(source, number) => {
                *number += 1;
                Ok(next_line(source)?.map(|text| (*number, text)))
            }
            Self::List(rows) => {
                Ok(rows.next().map(|(place, row)| (place as u64 + 1, Ok(row.get().to_owned()))))
            }
            Self::Table(names, rows) => {
                for record in rows {
                    let row = read_row(names, record)?;
                    // Spreadsheets write rows of commas.
                    if row.1 != Ok("{}".to_owned()) {
                        return Ok(Some(row));
                    }
                }
                Ok(None)
            }
        }
    }
}

fn read_list<R: Read>(source: BufReader<R>) -> std::io::Result<Rows<R>> {
    let mut text = Vec::new();
    source.take(LIST_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LIST_BYTES_MAX {
        let why = format!(
            "its list is longer than {LIST_BYTES_MAX} bytes; `jq -c '.[]' FILE` makes a line of each row"
        );
        return Err(invalid_data(why));
    }
    let text = String::from_utf8(text).map_err(|_| invalid_data("it is not UTF-8"))?;
    let rows: Vec<Box<RawValue>> = serde_json::from_str(text.trim_start_matches('\u{FEFF}'))
        .map_err(|why| invalid_data(format!("it begins with a list, which is not valid JSON: {why}")))?;
    Ok(Rows::List(rows.into_iter().enumerate()))
}

fn read_table<R: Read>(source: BufReader<R>) -> std::io::Result<Rows<R>> {
    let mut reader = csv::Reader::from_reader(source);
    let names: Vec<String> =
        reader.headers()?.iter().map(|name| name.trim_start_matches('\u{FEFF}').trim().to_owned()).collect();
    if let [name] = &names[..]
        && let Some(sign) = name.chars().find(|sign| [';', '\t', '|'].contains(sign))
    {
        let why = format!(
            "its first line has one column with {sign:?} in its name; columns are separated by commas"
        );
        return Err(invalid_data(why));
    }
    for (at, name) in names.iter().enumerate() {
        if !name.is_empty() && names[..at].contains(name) {
            return Err(invalid_data(format!("its first line has the column `{name}` twice")));
        }
    }
    Ok(Rows::Table(names, reader.into_records()))
}

fn invalid_data(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, why.into())
}

/// Returns a row of a table as an object. An empty cell is no field, nor is a cell of a column without a name: pandas writes the
/// numbers of rows so.
fn read_row(
    names: &[String],
    record: csv::Result<csv::StringRecord>,
) -> std::io::Result<(u64, Result<String, String>)> {
    let record = match record {
        Ok(record) => record,
        Err(why) => {
            let line = why.position().map_or(0, csv::Position::line);
            if let csv::ErrorKind::UnequalLengths { expected_len, len, .. } = why.kind() {
                let why =
                    format!("it has {}, and the first line has {expected_len}", counted(*len, "column"));
                return Ok((line, Err(why)));
            }
            if let csv::ErrorKind::Utf8 { .. } = why.kind() {
                return Ok((line, Err("it is not UTF-8".to_owned())));
            }
            return Err(why.into());
        }
    };
    let line = record.position().map_or(0, csv::Position::line);
    let mut fields: BTreeMap<&str, Value> = BTreeMap::new();
    for (name, cell) in names.iter().zip(&record) {
        if name.is_empty() || cell.trim().is_empty() {
            continue;
        }
        let is_list = ["options", "choices"].contains(&name.as_str()) && cell.trim_start().starts_with('[');
        let value = if is_list { serde_json::from_str(cell) } else { Ok(Value::from(cell)) };
        let Ok(value) = value else {
            return Ok((line, Err(format!("its `{name}` begins with `[` and is no list in JSON"))));
        };
        fields.insert(name, value);
    }
    let text = serde_json::to_string(&fields).map_err(|why| why.to_string());
    Ok((line, text))
}

/// Reads a line of any length; a line that is too long is skipped to its end.
fn next_line(source: &mut impl BufRead) -> std::io::Result<Option<Result<String, String>>> {
    let mut line = Vec::new();
    let most = LINE_BYTES_MAX as u64 + 1;
    let count = source.take(most).read_until(b'\n', &mut line)? as u64;
    if count == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && count == most {
        source.skip_until(b'\n')?;
        let why = format!("it is longer than {LINE_BYTES_MAX} bytes");
        return Ok(Some(Err(why)));
    }
    // Some programs begin every file with this mark.
    let text = String::from_utf8(line).map(|text| text.trim_start_matches('\u{FEFF}').to_owned());
    Ok(Some(text.map_err(|_| "it is not UTF-8".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8], is_table: bool) -> std::io::Result<Vec<(u64, Result<String, String>)>> {
        let mut rows = Rows::open(text, is_table)?;
        let mut out = Vec::new();
        while let Some(row) = rows.next()? {
            out.push(row);
        }
        Ok(out)
    }

    #[test]
    fn the_elements_of_a_list_are_rows() {
        let rows = all("\u{FEFF}\n[ {\"a\": 1.50},\n {\"b\": 2} ]\n".as_bytes(), false).unwrap();
        assert_eq!(rows, [(1, Ok("{\"a\": 1.50}".to_owned())), (2, Ok("{\"b\": 2}".to_owned()))]);
        let why = all(b"[{}\n{}", false).unwrap_err().to_string();
        assert!(
            why.starts_with("it begins with a list, which is not valid JSON: expected `,` or `]` at line 2"),
            "{why}"
        );
        assert_eq!(all(b"[\xFF]", false).unwrap_err().to_string(), "it is not UTF-8");
    }

    #[test]
    fn table_columns_become_row_fields() {
        let table = "\u{FEFF}id,prompt,answer\n1,\"How much,\nthen?\",\"1,018\"\n2,x,\n3,y\n4,z,5\n";
        let rows = all(table.as_bytes(), true).unwrap();
        let indexed = all(b",id,prompt\n0,a,x\n1,b,y\n", true).unwrap();
        assert_eq!(indexed[1], (3, Ok(r#"{"id":"b","prompt":"y"}"#.to_owned())));
        let wanted = [
            (2, Ok(r#"{"answer":"1,018","id":"1","prompt":"How much,\nthen?"}"#.to_owned())),
            (4, Ok(r#"{"id":"2","prompt":"x"}"#.to_owned())),
            (5, Err("it has 2 columns, and the first line has 3".to_owned())),
            (6, Ok(r#"{"answer":"5","id":"4","prompt":"z"}"#.to_owned())),
        ];
        assert_eq!(rows, wanted);
        let of_spreadsheet =
            all(b"id,prompt,options,,\n1,x,\"[\"\"a\"\",\"\"b\"\"]\",,\n,,,,\n2,y,[a,,\n", true).unwrap();
        let fault = "its `options` begins with `[` and is no list in JSON".to_owned();
        let options = r#"{"id":"1","options":["a","b"],"prompt":"x"}"#.to_owned();
        assert_eq!(of_spreadsheet, [(2, Ok(options)), (4, Err(fault))]);
        let rows = all(b"id,prompt\n1,\xFF\n2,b\n", true).unwrap();
        assert_eq!(rows[0], (2, Err("it is not UTF-8".to_owned())));
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn other_separator_or_repeated_column_is_refused() {
        for (table, part) in
            [("id;prompt\n1;x\n", "separated by commas"), ("id,id\n1,2\n", "the column `id` twice")]
        {
            let why = all(table.as_bytes(), true).unwrap_err().to_string();
            assert!(why.contains(part), "{why}");
        }
    }
}
