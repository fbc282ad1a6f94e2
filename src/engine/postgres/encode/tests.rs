//! Tests of the encoders together: a snapshot, round trips through independent decoders, streams and differences.

use std::sync::Arc;

use bytes::BytesMut;
use proptest::prelude::*;

use crate::data::tests::{booking_table, choice, column, every_generator, table};
use crate::data::{Content, TableGenerator};
use crate::model::{ColumnType, CopyFormat, Generator, Scalar, Table};

use super::*;

fn generator(table: &Table) -> Arc<TableGenerator> {
    Arc::new(TableGenerator::new(table).expect("a valid table"))
}

fn encoded(table: &Table, format: CopyFormat) -> BytesMut {
    let mut encoder = CopyEncoder::new(format, generator(table));
    let mut out = BytesMut::new();
    encoder.begin(false, &mut out);
    encoder.rows(0..table.rows, &mut out);
    encoder.end(&mut out);
    out
}

fn lines(table: &Table, format: CopyFormat) -> String {
    String::from_utf8(encoded(table, format).to_vec()).expect("text")
}

/// Generated content must never change silently: results of different loadlab versions would not compare.
#[test]
fn generated_rows_are_the_ones_they_always_were() {
    insta::assert_snapshot!(lines(&every_generator(6), CopyFormat::Text));
    let content = expected_content(&every_generator(1000), 0).expect("valid");
    assert_eq!(content.to_string(), "1000 rows, checksum 8f7420f6fa1fcbea9ee341fc944d4abb");
    let booking = expected_content(&booking_table(100_000), 0).expect("valid");
    assert_eq!(booking.to_string(), "100000 rows, checksum 0eaca99adf95298480307d350c14eaeb");
}

#[test]
fn the_published_table_looks_as_published() {
    assert_eq!(
        lines(&booking_table(2), CopyFormat::Csv),
        "1000000,1,12,2017-06-08 00:00:00+00,boe0kingdetail0\n1000001,1,12,2017-06-08 00:00:00+00,boe1kingdetail1\n"
    );
    let mut literals = String::new();
    LiteralEncoder::new(generator(&booking_table(2))).rows(1..2, &mut literals);
    assert_eq!(literals, "(1000001, 1, 12, '2017-06-08 00:00:00+00', 'boe1kingdetail1')");
    let mut header = BytesMut::new();
    CopyEncoder::new(CopyFormat::Csv, generator(&booking_table(2))).begin(true, &mut header);
    assert_eq!(&header[..], b"id_h,source_system_id,organisation_id,load_dts,boekingdetailid\n");
}

#[test]
fn neighbouring_constants_are_one_copy_of_bytes() {
    let mut encoder = BinaryEncoder::new(generator(&booking_table(1)));
    let mut out = BytesMut::new();
    encoder.row(0, &mut out);
    let mut expected =
        vec![0, 5, 0, 0, 0, 4, 0, 0x0f, 0x42, 0x40, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 12];
    expected.extend([0, 0, 0, 8]);
    expected.extend((6368_i64 * 86_400_000_000).to_be_bytes());
    expected.extend([0, 0, 0, 15]);
    expected.extend(b"boe0kingdetail0");
    assert_eq!(&out[..], &expected[..]);
}

#[test]
fn content_is_the_same_by_every_way() {
    let table = every_generator(500);
    let expected = expected_content(&table, 0).expect("valid");
    let stream = encoded(&table, CopyFormat::Binary);
    for size in [1, 7, 64, 1000, stream.len()] {
        let mut reader = ContentReader::new();
        stream.chunks(size).for_each(|chunk| reader.push(chunk).expect("whole"));
        assert_eq!(reader.finish(), Ok(expected));
    }
    let mut parameters = Parameters::new(generator(&table));
    let mut hasher = RowHasher::new();
    for start in (0..500).step_by(50) {
        parameters.set_rows(start..start + 50);
        let fields: Vec<RawParameter<'_>> = parameters.iter().collect();
        assert_eq!((fields.len(), parameters.iter().len()), (600, 600));
        fields.chunks(12).for_each(|row| hasher.row(row.iter().map(|field| field.0)));
    }
    assert_eq!(hasher.content(), expected);
    let halves = content_of(&generator(&table), 250..500).merge(content_of(&generator(&table), 0..250));
    assert_eq!(halves, expected);
}

#[test]
fn streams_that_are_not_whole_are_refused() {
    let stream = encoded(&booking_table(3), CopyFormat::Binary);
    let read = |bytes: &[u8]| {
        let mut reader = ContentReader::new();
        reader.push(bytes).and_then(|()| reader.finish())
    };
    assert_eq!(read(&stream[..stream.len() - 2]), Err(StreamError::Truncated(3)));
    assert_eq!(read(&stream[..stream.len() - 9]), Err(StreamError::Truncated(2)));
    assert_eq!(read(&[]), Err(StreamError::Truncated(0)));
    assert_eq!(read(&[&stream[..], b"x"].concat()), Err(StreamError::Trailing(1)));
    assert!(matches!(read(b"1\t2\n"), Err(StreamError::Signature(_))));
    let negative = [COPY_HEADER, &[0, 1, 0xff, 0xff, 0xff, 0xfe]].concat();
    assert!(matches!(read(&negative), Err(StreamError::Length { row: 0, found: -2, .. })));
    assert_eq!(read(&[COPY_HEADER, COPY_TRAILER].concat()), Ok(Content::default()));
}

/// A sink that loses the first row of each batch of 1,000, and one that changes a value.
#[test]
fn the_first_lost_and_the_first_wrong_row_are_named() {
    let table = booking_table(10_001);
    let generator = generator(&table);
    let mut lossy = BytesMut::from(COPY_HEADER);
    let mut encoder = BinaryEncoder::new(Arc::clone(&generator));
    (0..10_001).filter(|row| row % 1000 != 0 || *row == 0).for_each(|row| encoder.row(row, &mut lossy));
    encoder.row(20_000, &mut lossy);
    lossy.extend_from_slice(COPY_TRAILER);
    let mut finder = DifferenceFinder::new(Arc::clone(&generator), 0..10_001).expect("below the limit");
    lossy.chunks(777).for_each(|chunk| finder.push(chunk).expect("whole"));
    assert_eq!(
        finder.finish().to_string(),
        "expected 10001 rows, found 9992; 10 missing, the first is row 1000 (id_h = 1001000, source_system_id = 1); \
         1 too many or changed, the first is (id_h = 1020000, source_system_id = 1)"
    );
    assert!(DifferenceFinder::new(generator, 0..u64::MAX).is_none());
}

#[test]
fn doubled_rows_are_too_many() {
    let constant = column("c", ColumnType::Text, Generator::Constant(Scalar::Text("a\tb".to_owned())));
    let generator = generator(&table(vec![constant], 3));
    let mut stream = BytesMut::from(COPY_HEADER);
    BinaryEncoder::new(Arc::clone(&generator)).rows(0..4, &mut stream);
    stream.extend_from_slice(COPY_TRAILER);
    let mut finder = DifferenceFinder::new(generator, 0..3).expect("below the limit");
    finder.push(&stream).expect("whole");
    let found = finder.finish();
    assert_eq!((found.missing, found.extra, found.first_extra.as_deref()), (0, 1, Some("c = a\\tb")));
}

/// The fields of a line of COPY's text format, by the rules of the manual.
fn read_text_line(line: &str) -> Vec<Option<String>> {
    let field = |field: &str| {
        let mut text = String::new();
        let mut characters = field.chars();
        while let Some(character) = characters.next() {
            text.push(match character {
                '\\' => match characters.next().expect("an escape has a letter") {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                },
                other => other,
            });
        }
        (field != "\\N").then_some(text)
    };
    line.split('\t').map(field).collect()
}

/// The fields of a CSV text's first row; an unquoted empty one is NULL.
fn read_csv(text: &str) -> (Vec<Option<String>>, &str) {
    let (mut fields, mut rest) = (Vec::new(), text);
    loop {
        let end = if let Some(inside) = rest.strip_prefix('"') {
            let quoted = inside.replace("\"\"", "\0\0");
            let end = quoted.find('"').expect("a quoted field ends");
            fields.push(Some(inside[..end].replace("\"\"", "\"")));
            end + 2
        } else {
            let end = rest.find([',', '\n']).expect("a field ends");
            fields.push((end > 0).then(|| rest[..end].to_owned()));
            end
        };
        let done = rest[end..].starts_with('\n');
        rest = &rest[end + 1..];
        if done {
            return (fields, rest);
        }
    }
}

fn read_binary(stream: &[u8]) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut rows = Vec::new();
    let mut reader = CopyRows::default();
    let on_row = |mut body: &[u8]| {
        let mut row = Vec::new();
        while let Some((length, rest)) = body.split_first_chunk::<4>() {
            let length = i32::from_be_bytes(*length);
            let bytes = usize::try_from(length).unwrap_or(0);
            row.push((length >= 0).then(|| rest[..bytes].to_vec()));
            body = &rest[bytes..];
        }
        rows.push(row);
    };
    reader.push(stream, on_row).expect("a whole stream");
    rows
}

proptest! {
    /// Text and numbers arrive unchanged by text, CSV and binary.
    #[test]
    fn values_survive_every_format(
        words in prop::collection::vec("[^\0]{0,12}", 1..4),
        integer: i64,
        bits: u64,
        seed: u64,
    ) {
        let float = f64::from_bits(bits);
        let mut table = table(
            vec![
                column("w", ColumnType::Text, choice(&words.iter().map(String::as_str).collect::<Vec<_>>())),
                column("i", ColumnType::Int8, Generator::Constant(Scalar::Int(integer))),
                column("f", ColumnType::Float8, Generator::Constant(Scalar::Float(float))),
            ],
            4,
        );
        table.seed = seed;
        table.columns[0].nulls = 0.2;
        let (text, csv) = (lines(&table, CopyFormat::Text), lines(&table, CopyFormat::Csv));
        let mut csv_rest = csv.as_str();
        prop_assert_eq!(text.lines().count(), 4);
        for (line, binary) in text.split_terminator('\n').zip(read_binary(&encoded(&table, CopyFormat::Binary))) {
            let (fields, rest) = read_csv(csv_rest);
            csv_rest = rest;
            prop_assert_eq!(&fields, &read_text_line(line));
            prop_assert!(fields[0].as_ref().is_none_or(|word| words.contains(word)));
            prop_assert_eq!(fields[0].as_deref().map(str::as_bytes), binary[0].as_deref());
            prop_assert_eq!(&fields[1], &Some(integer.to_string()));
            prop_assert_eq!(binary[1].as_deref(), Some(&integer.to_be_bytes()[..]));
            let read: f64 = fields[2].as_deref().expect("not null").parse().expect("a float");
            let sent = binary[2].as_deref().and_then(|bytes| bytes.try_into().ok()).map(f64::from_be_bytes);
            prop_assert_eq!(read.is_nan(), float.is_nan());
            prop_assert!(float.is_nan() || (read.to_bits() == bits && sent.map(f64::to_bits) == Some(bits)));
        }
        prop_assert!(csv_rest.is_empty());
    }

    /// The text of a timestamp, read by another library, is the binary value.
    #[test]
    fn timestamps_read_the_same_elsewhere(seed: u64) {
        let bound = |text: &str| Scalar::Text(text.to_owned());
        let (min, max) = (bound("0001-01-01"), bound("9999-12-30"));
        let mut table = table(vec![column("t", ColumnType::Timestamptz, Generator::Uniform { min, max })], 5);
        table.seed = seed;
        let epoch: jiff::Timestamp = "2000-01-01T00:00:00Z".parse().expect("valid");
        let text = lines(&table, CopyFormat::Text);
        for (line, binary) in text.lines().zip(read_binary(&encoded(&table, CopyFormat::Binary))) {
            let read: jiff::Timestamp = line.parse().expect("ISO 8601");
            let micros = read.as_microsecond() - epoch.as_microsecond();
            prop_assert_eq!(binary[0].as_deref(), Some(&micros.to_be_bytes()[..]));
        }
    }
}
