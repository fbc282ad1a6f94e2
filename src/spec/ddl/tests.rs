//! Tests of reading tables and indexes.

use super::*;
use crate::model::{ColumnType, Persistence};

#[track_caller]
fn table(sql: &str) -> ParsedTable {
    parse_table(sql).unwrap_or_else(|findings| panic!("{findings:?}"))
}

/// `line:column message` of every finding of a table.
fn wrong(sql: &str) -> Vec<String> {
    parse_table(sql).map_or_else(texts, |table| panic!("{table:?}"))
}

fn texts(findings: Vec<SqlFinding>) -> Vec<String> {
    findings
        .into_iter()
        .map(|finding| format!("{}:{} {}", finding.line, finding.column, finding.message))
        .collect()
}

fn names(table: &ParsedTable) -> Vec<&str> {
    table.columns.iter().map(|column| column.name.as_str()).collect()
}

fn keys(table: &ParsedTable) -> Vec<&str> {
    table.columns.iter().filter(|column| column.primary_key).map(|column| column.name.as_str()).collect()
}

#[test]
fn a_plain_table_is_read() {
    let table = table(
        "CREATE UNLOGGED TABLE h_boekingdetail (\n  id_h integer NOT NULL, load_dts timestamptz, \
         boekingdetailid varchar(255) DEFAULT 'x', amount numeric(10,2)[])",
    );
    assert_eq!(table.name, "h_boekingdetail");
    assert_eq!(table.persistence, Persistence::Unlogged);
    assert!(!table.partitioned);
    let columns: Vec<_> = table
        .columns
        .iter()
        .map(|column| (column.name.as_str(), column.sql_type.as_str(), column.not_null))
        .collect();
    assert_eq!(
        columns,
        [
            ("id_h", "integer", true),
            ("load_dts", "timestamptz", false),
            ("boekingdetailid", "varchar(255)", false),
            ("amount", "numeric(10,2)[]", false),
        ]
    );
    assert_eq!(table.columns[2].kind, Some(ColumnType::Varchar(Some(255))));
    assert_eq!((table.columns[0].line, table.columns[0].column), (2, 3));
    assert_eq!(table.statements.len(), 1);
}

#[test]
fn spellings_of_types_survive_the_parser() {
    let sql = "CREATE TABLE t (a int4, b int8, c serial, d bigserial, e float8, f double precision, g real, \
        h decimal(5,1), i bool, j character varying(3), k character(2), l bpchar(4), m bytea, n date, \
        o timestamp(6) with time zone, p timestamp without time zone, q uuid, r jsonb, s json, t text[], \
        u integer[][], v smallint, w float, x bpchar, y numeric, z pg_catalog.int4, za float4, zb timestamptz(6), \
        zc char)";
    let table = table(sql);
    let unknown: Vec<_> = table.columns.iter().filter(|column| column.kind.is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let kind =
        |name: &str| table.columns.iter().find(|column| column.name == name).unwrap().kind.clone().unwrap();
    assert_eq!(kind("c"), ColumnType::Int4);
    assert_eq!(kind("d"), ColumnType::Int8);
    assert_eq!(kind("o"), ColumnType::Timestamptz);
    assert_eq!(kind("p"), ColumnType::Timestamp);
    assert_eq!(kind("x"), ColumnType::Varchar(None));
    assert_eq!(kind("u"), ColumnType::Array(Box::new(ColumnType::Int4)));
    assert!(table.columns[2].not_null, "serial is NOT NULL");
}

#[test]
fn unknown_types_are_kept_without_a_kind() {
    let table =
        table("CREATE TYPE mood AS ENUM ('ok'); CREATE TABLE t (a mood, b \"Mood\", c inet, d interval)");
    assert!(table.columns.iter().all(|column| column.kind.is_none()), "{table:?}");
    assert_eq!(table.columns[1].sql_type, "\"Mood\"");
    assert_eq!(
        table.statements,
        ["CREATE TYPE mood AS ENUM ('ok')", "CREATE TABLE t (a mood, b \"Mood\", c inet, d interval)"]
    );
}

#[test]
fn names_are_folded_unless_quoted() {
    let table = table("CREATE TABLE IF NOT EXISTS \"My \"\"Table\" (Id int, \"Id\" int, ÄB int)");
    assert_eq!(table.name, "My \"Table");
    assert_eq!(names(&table), ["id", "Id", "Äb"]);
}

#[test]
fn primary_keys_are_found_everywhere() {
    assert_eq!(keys(&table("CREATE TABLE t (a int PRIMARY KEY, b int)")), ["a"]);
    assert_eq!(
        keys(&table("CREATE TABLE t (a int, b int, c int, CONSTRAINT k PRIMARY KEY (c, A))")),
        ["a", "c"]
    );
    let altered =
        table("CREATE TABLE t (a int, b int); ALTER TABLE ONLY t ADD CONSTRAINT k PRIMARY KEY (b);");
    assert_eq!(keys(&altered), ["b"]);
    assert!(altered.columns[1].not_null);
    assert_eq!(
        wrong("CREATE TABLE t (a int, PRIMARY KEY (z))"),
        ["1:1 the primary key names `z`, which is no column of the table"]
    );
}

#[test]
fn partitioned_tables_bring_their_partitions() {
    let table = table(
        "CREATE TABLE t (a int, b date) PARTITION BY RANGE (b);\n\
         CREATE TABLE t_2024 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');\n\
         CREATE TABLE t_rest PARTITION OF t DEFAULT;",
    );
    assert!(table.partitioned);
    assert_eq!((table.name.as_str(), table.statements.len()), ("t", 3));
}

#[test]
fn companions_are_kept_even_when_they_are_not_understood() {
    let table = table(
        "CREATE TABLE t (a text);\nALTER TABLE t ALTER COLUMN a SET STORAGE EXTERNAL;\n\
         ALTER TABLE t SET (autovacuum_enabled = off);\nALTER TABLE t ALTER COLUMN a SET COMPRESSION lz4;\n\
         ALTER TABLE t ALTER a SET NOT NULL; SELECT create_hypertable('t', 'a'); COMMENT ON TABLE t IS 'x;y'",
    );
    assert_eq!(table.statements.len(), 7);
    assert!(table.columns[0].not_null);
}

#[test]
fn alter_table_of_the_table_itself_is_applied() {
    let changed = table(
        "CREATE TABLE t (a int); ALTER TABLE t SET UNLOGGED; ALTER TABLE t ADD COLUMN b text; ALTER TABLE u ADD c int",
    );
    assert_eq!(changed.persistence, Persistence::Unlogged);
    assert_eq!(names(&changed), ["a", "b"]);
    assert_eq!(
        wrong("CREATE TABLE t (a int); ALTER TABLE t DROP COLUMN a"),
        ["1:25 this changes what CREATE TABLE has just made"]
    );
    assert_eq!(
        wrong("CREATE TABLE t (a int); ALTER TABLE t ALTER a TYPE bigint"),
        ["1:25 this changes the type of `a`"]
    );
}

#[test]
fn columns_the_server_computes_are_not_loaded() {
    let table = table(
        "CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a * 2) STORED, c int GENERATED BY DEFAULT AS IDENTITY)",
    );
    assert_eq!(names(&table), ["a", "c"]);
    assert_eq!(table.computed, ["b"]);
    assert!(table.columns[1].not_null);
    assert_eq!(
        wrong("CREATE TABLE t (a int,\n c int GENERATED ALWAYS AS IDENTITY)"),
        ["2:2 the column `c` is GENERATED ALWAYS AS IDENTITY, so INSERT cannot fill it"]
    );
}

#[test]
fn refused_tables_say_why_and_where() {
    assert_eq!(wrong(""), ["1:1 there is no CREATE TABLE statement here"]);
    assert_eq!(wrong("CREATE TABLE my.t (a int)"), ["1:14 the table's name `t` has a schema"]);
    assert_eq!(wrong("\n CREATE TEMP TABLE t (a int)"), ["2:2 temporary tables cannot be loaded"]);
    assert_eq!(wrong("CREATE LOCAL TEMPORARY TABLE t (a int)"), ["1:1 temporary tables cannot be loaded"]);
    assert_eq!(
        wrong("CREATE TABLE pg_t (a int)"),
        ["1:14 the name `pg_t` begins with `pg_`, which is the server's own"]
    );
    assert_eq!(wrong("CREATE TABLE t (a int, A text)"), ["1:24 the column `a` is declared twice"]);
    assert_eq!(
        wrong("CREATE TABLE t (xmin int)"),
        ["1:17 the name `xmin` is a system column of every table"]
    );
    assert_eq!(
        wrong("CREATE TABLE t (a int);\n  CREATE TABLE u (a int)"),
        ["2:3 a second CREATE TABLE stands here, `t` is created above"]
    );
    assert_eq!(
        wrong("CREATE TABLE t (a int); INSERT INTO t VALUES (1)"),
        ["1:25 `INSERT` is not part of a table's definition"]
    );
    assert_eq!(wrong("CREATE TABLE t (a int)\0"), ["1:23 the SQL holds a NUL character"]);
    assert_eq!(
        wrong("CREATE TABLE t AS SELECT 1 AS a"),
        ["1:1 CREATE TABLE AS takes its columns from a query"]
    );
    assert_eq!(wrong("CREATE TABLE t ()"), ["1:1 the table has no columns"]);
}

#[test]
fn long_names_are_refused_wherever_they_stand() {
    let long = "n".repeat(70);
    let sql = format!(
        "CREATE TABLE t (a int, CONSTRAINT {long} PRIMARY KEY (a));\nALTER TABLE t ADD \"{long}\" int"
    );
    let found = wrong(&sql);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("1:35 the name `nnn") && found[0].contains("70 bytes"), "{found:?}");
    assert!(found[1].starts_with("2:19 "), "{found:?}");
    assert_eq!(wrong(&format!("CREATE TABLE {long} (a int)")).len(), 1);
}

#[test]
fn tables_have_at_most_1600_columns() {
    let sql = |count: usize| {
        let columns: Vec<String> = (0..count).map(|number| format!("c{number} int")).collect();
        format!("CREATE TABLE t ({})", columns.join(", "))
    };
    assert_eq!(table(&sql(1600)).columns.len(), 1600);
    let found = wrong(&sql(1700));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("`c1600` is column 1601 of the table"), "{found:?}");
}

#[test]
fn what_is_not_understood_is_shown_with_its_place_and_remedy() {
    let sql = "-- a table\nCREATE TABLE t (\n  a int,\n  b text STORAGE EXTERNAL\n)";
    let findings = parse_table(sql).unwrap_err();
    insta::assert_debug_snapshot!(findings, @r#"
    [
        SqlFinding {
            line: 4,
            column: 10,
            message: "this SQL is not understood: Expected: ',' or ')' after column definition, found: STORAGE",
            hint: Some(
                "if the server accepts it (STORAGE, COMPRESSION and LIKE are not understood here), move it to an ALTER TABLE, or declare the table's columns under `columns:`, then the SQL is sent as it is written",
            ),
        },
    ]
    "#);
    assert!(!wrong("CREATE TABLE t (a int").is_empty());
    assert!(!wrong("CREATE TABLE t (LIKE u INCLUDING ALL)").is_empty());
    assert!(!wrong("CREATE TABLE t (a text 'unterminated)").is_empty());
    assert!(!wrong("CREATE TABLE").is_empty());
    let deep = format!("CREATE TABLE t (a int DEFAULT {}1{})", "(".repeat(5000), ")".repeat(5000));
    assert!(wrong(&deep)[0].contains("too deeply"));
}

#[test]
fn declared_columns_need_no_parser() {
    let header =
        parse_table_header("CREATE UNLOGGED TABLE \"T\" (b text STORAGE EXTERNAL) PARTITION BY HASH (b)")
            .unwrap();
    assert_eq!(header.name, "T");
    assert_eq!(header.persistence, Persistence::Unlogged);
    assert!(header.partitioned && header.columns.is_empty());
    assert_eq!(
        texts(parse_table_header("CREATE TEMP TABLE t (LIKE u)").unwrap_err()),
        ["1:1 temporary tables cannot be loaded"]
    );
}

#[test]
fn indexes_name_tables_columns_and_the_primary_key() {
    let indexes = parse_indexes(
        "ALTER TABLE t ADD PRIMARY KEY (id_h);\nCREATE INDEX ON t (boekingdetailid);\n\
         CREATE UNIQUE INDEX CONCURRENTLY i ON T USING btree (lower(name), \"Key\" DESC) INCLUDE (extra) WHERE a > 1;",
    )
    .unwrap();
    assert_eq!(indexes.tables, ["t"]);
    assert_eq!(indexes.primary_key, ["id_h"]);
    let columns: Vec<_> =
        indexes.columns.iter().map(|column| (column.name.as_str(), column.line, column.column)).collect();
    assert_eq!(columns, [("id_h", 1, 32), ("boekingdetailid", 2, 20), ("Key", 3, 67), ("extra", 3, 88)]);
    assert_eq!((indexes.indexes, indexes.statements.len()), (3, 3));
    assert_eq!(parse_indexes("").unwrap(), ParsedIndexes::default());
}

#[test]
fn unusual_indexes_are_read_or_answered() {
    for sql in [
        "CREATE INDEX ON t USING gin (j jsonb_path_ops)",
        "CREATE INDEX ON t USING brin (a) WITH (pages_per_range = 32)",
        "CREATE INDEX ON t (a text_pattern_ops, b NULLS FIRST)",
        "CREATE INDEX ON t (a) WITH (fillfactor = 70)",
        "CREATE STATISTICS s ON a, b FROM t",
        "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID",
        "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u (b)",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
        "CLUSTER t USING i",
        "ANALYZE t",
    ] {
        assert_eq!(parse_indexes(sql).map(|indexes| indexes.statements.len()), Ok(1), "{sql}");
    }
    let wrong = |sql: &str| texts(parse_indexes(sql).unwrap_err());
    assert_eq!(wrong("CREATE TABLE u (a int)"), ["1:1 `CREATE TABLE` is not an index or a constraint"]);
    assert_eq!(wrong("DELETE FROM t"), ["1:1 `DELETE` is not an index or a constraint"]);
    assert_eq!(
        wrong("CREATE INDEX pg_i ON t (a)"),
        ["1:1 the name `pg_i` begins with `pg_`, which is the server's own"]
    );
    assert!(wrong("\nCREATE INDEX ON t (a")[0].starts_with("2:"));
    assert_eq!(wrong(&format!("CREATE INDEX {} ON t (a)", "i".repeat(64))).len(), 1);
}

proptest::proptest! {
    #[test]
    fn any_text_is_answered(sql in "(CREATE |ALTER |TABLE |INDEX |t |ON |\\(|\\)|,|;|a int|'|\"|\\$\\$|--|PRIMARY KEY|PARTITION |BY |\\.|é|\n){0,12}") {
        let _ = parse_table(&sql);
        let _ = parse_table_header(&sql);
        let _ = parse_indexes(&sql);
    }
}

#[test]
fn the_ordinary_clauses_of_postgres_are_understood() {
    for sql in [
        "CREATE TABLE t (a int) WITH (fillfactor=70, autovacuum_enabled=off, toast.autovacuum_enabled=false)",
        "CREATE TABLE t (a int) USING heap",
        "CREATE TABLE t (a int) USING heap WITH (fillfactor = 90) TABLESPACE pg_default",
        "CREATE TABLE t (a int CHECK (a > 0), b int REFERENCES u (x) ON DELETE CASCADE, UNIQUE (a, b))",
        "CREATE TABLE t (a int UNIQUE NULLS NOT DISTINCT, EXCLUDE USING gist (a WITH =))",
        "CREATE TABLE t (a timestamptz DEFAULT now(), b text COLLATE \"C\" NOT NULL DEFAULT 'x'::text)",
        "CREATE TABLE t (a int[] DEFAULT '{}', b interval day to second, c bit varying(5), d vector(3))",
        "CREATE TABLE t (a int GENERATED BY DEFAULT AS IDENTITY (START WITH 10), b int ARRAY[4])",
        "CREATE TABLE t (a date) PARTITION BY RANGE (date_trunc('day', a))",
        "CREATE TABLE t (a int CONSTRAINT nn NOT NULL, PRIMARY KEY (a) INCLUDE (b), b int)",
        "CREATE TABLE t (value text, date date, timestamp timestamp, type text, key text, index int, level int)",
    ] {
        let found = table(sql);
        assert!(!found.columns.is_empty(), "{sql}");
        assert_eq!(found.statements, [sql]);
    }
    assert!(!wrong("CREATE TABLE t (a int) NONSENSE").is_empty());
    assert!(!wrong("CREATE TABLE t (a int STORAGE MAIN) USING heap").is_empty());
}
