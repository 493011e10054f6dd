//! Files of SQL: a small shop, with statements that only some configurations send.

use super::{Numbers, Usual};

pub(super) const USUAL: Usual = Usual {
    long: 9_000,
    short: 25,
    instance: 2_000,
};

const SETUP: &str = "\
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, kind INT);
CREATE TABLE sale(item INT, day INT, amount INT, note TEXT COLLATE NOCASE);
CREATE INDEX by_day ON sale(day, item);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60) INSERT INTO item SELECT x, 'item ' || x, x * 1.25, x % 5 FROM n;
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 120) INSERT INTO sale SELECT x % 60 + 1, x % 30, x % 7, 'note ' || x FROM n;
";

/// What every configuration sends; `{n}` stands for a number.
const COMMON: [&str; 8] = [
    "INSERT INTO sale VALUES ({n} % 60 + 1, {n} % 30, {n} % 9, 'note {n}');",
    "SELECT name, price FROM item WHERE id = {n} % 60 + 1;",
    "SELECT sum(amount) FROM sale WHERE day = {n} % 30;",
    "SELECT i.name, s.amount FROM item i JOIN sale s ON s.item = i.id WHERE s.day = {n} % 30 LIMIT 5;",
    "UPDATE item SET price = price + 0.25 WHERE id = {n} % 60 + 1;",
    "SELECT kind, count(*), avg(price) FROM item GROUP BY kind;",
    "DELETE FROM sale WHERE day = {n} % 30 AND amount = {n} % 9;",
    "SELECT note FROM sale ORDER BY amount DESC, day LIMIT 3;",
];

/// What only some send.
const SPECIAL: [&str; 18] = [
    "SELECT name, rank() OVER (PARTITION BY kind ORDER BY price DESC) FROM item WHERE kind = {n} % 5;",
    "SELECT id, sum(price) OVER (ORDER BY id ROWS 2 PRECEDING) FROM item LIMIT 6;",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {n} % 20 + 2) SELECT sum(x) FROM n;",
    "SELECT name FROM item WHERE name LIKE '%{n}%' OR name GLOB '*1' ORDER BY name;",
    "SELECT DISTINCT day FROM sale UNION SELECT kind FROM item EXCEPT SELECT {n} % 5 ORDER BY 1 LIMIT 4;",
    "SELECT upper(substr(name, 2, 3)), hex(name), replace(name, 'i', 'o'), instr(name, 't'), length(name) FROM item WHERE id < 4;",
    "SELECT date({n} * 86400, 'unixepoch', '+1 month'), strftime('%H:%M', {n});",
    "SELECT json_extract('{\"a\": [1, {n}, {\"b\": \"c\"}]}', '$.a[2].b'), json_array({n}, 'x', NULL);",
    "SELECT key, value FROM json_each('{\"x\": {n}, \"y\": true}');",
    "BEGIN; UPDATE sale SET amount = amount + 1 WHERE day = {n} % 30; ROLLBACK;",
    "SAVEPOINT s; DELETE FROM sale WHERE item = {n} % 60; ROLLBACK TO s; RELEASE s;",
    "SELECT CASE {n} % 3 WHEN 0 THEN 'zero' WHEN 1 THEN 'one' ELSE 'two' END, coalesce(NULL, {n}), nullif({n}, 1), iif({n} > 50, 'a', 'b');",
    "SELECT name FROM item WHERE id IN (SELECT item FROM sale WHERE day BETWEEN {n} % 30 AND {n} % 30 + 2);",
    "SELECT group_concat(name, '/') FROM item WHERE kind = {n} % 5;",
    "SELECT i.name FROM item i LEFT JOIN sale s ON s.item = i.id WHERE s.day IS NULL;",
    "INSERT OR REPLACE INTO item VALUES ({n} % 60 + 1, 'again {n}', 2.5, {n} % 5);",
    "SELECT {n} << 3 | 4 & 6, ~{n}, {n} / 7.0, {n} / 7, {n} % 7, 'a' || {n}, round({n} * 1.1, 1), abs(-{n}), typeof({n});",
    "SELECT count(*) FILTER (WHERE amount > 3), max(note), min(note) FROM sale GROUP BY day HAVING count(*) > 1 LIMIT 5;",
];

/// What is sent seldom.
const SELDOM: [&str; 12] = [
    "ANALYZE;",
    "REINDEX by_day;",
    "PRAGMA table_info(item);",
    "PRAGMA integrity_check;",
    "SELECT nonsense FROM nowhere;",
    "SELEC {n};",
    "INSERT INTO item VALUES ({n} % 60 + 1, NULL, 1, 1);",
    "EXPLAIN QUERY PLAN SELECT * FROM item JOIN sale ON item.id = sale.item ORDER BY name;",
    "CREATE TEMP TABLE IF NOT EXISTS t(a, b, PRIMARY KEY(a, b)) WITHOUT ROWID; INSERT OR IGNORE INTO t VALUES ({n}, {n} % 3); SELECT count(*) FROM t;",
    "CREATE VIEW IF NOT EXISTS dear AS SELECT name FROM item WHERE price > 50; SELECT * FROM dear LIMIT 2;",
    "CREATE TRIGGER IF NOT EXISTS sold AFTER INSERT ON sale WHEN new.amount > 7 BEGIN UPDATE item SET kind = 4 WHERE id = new.item; END;",
    "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(body); INSERT INTO words VALUES ('thin slices {n}'); SELECT snippet(words, 0, '[', ']', '.', 3) FROM words WHERE words MATCH 'slices' LIMIT 2;",
];

/// How many statements pass between two seldom ones.
const RARE: u64 = 29;

/// The statements of a configuration.
pub(super) fn script(configuration: Option<usize>, seed: u64, requests: u64) -> String {
    let mut own = Numbers::new(configuration.map_or(0, |number| number as u64 + 1));
    let mut chosen = |from: &[&'static str], of_ten: u64| -> Vec<&'static str> {
        let drawn = from
            .iter()
            .filter(|_| configuration.is_none() || own.below(10) < of_ten);
        drawn.copied().collect()
    };
    let mut trades = COMMON.to_vec();
    trades.extend(chosen(&SPECIAL, 4));
    let seldom = chosen(&SELDOM, 6);
    let mut draw = Numbers::new(seed);
    let mut text = String::from(SETUP);
    for request in 1..=requests {
        let rare = request % RARE == 0 && !seldom.is_empty();
        let from = if rare { &seldom } else { &trades };
        let statement = from[draw.below(from.len() as u64) as usize];
        text.push_str(&statement.replace("{n}", &draw.below(1000).to_string()));
        text.push('\n');
    }
    text
}
