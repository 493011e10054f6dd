CREATE TABLE v(i INTEGER PRIMARY KEY, a, b);
WITH RECURSIVE r(i, x) AS (SELECT 1, (?1 * 104729) % 65521 UNION ALL SELECT i + 1, (x * 75 + 74) % 65521 FROM r WHERE i < 30)
INSERT INTO v SELECT i, CASE WHEN ?1 % 3 = 0 THEN x ELSE x - 30000 END * (CASE x % 4 WHEN 0 THEN 1 WHEN 1 THEN 300 ELSE 70000 END), CASE x % 5 WHEN 0 THEN NULL WHEN 1 THEN x / 8.0 WHEN 2 THEN 'text' || x ELSE x END FROM r;
SELECT a FROM v ORDER BY a LIMIT 12;
SELECT a FROM v WHERE ?1 % 4 = 1 ORDER BY a DESC;
SELECT sum(a), avg(a), min(b), max(b), count(b), total(b) FROM v;
SELECT round(a / 1000.0, ?1 % 4), abs(a), a % 7, a / 3, a << 2, ~a FROM v WHERE i < 6;
SELECT typeof(b), count(*) FROM v GROUP BY typeof(b) ORDER BY 1;
SELECT CAST(b AS INTEGER), CAST(a AS TEXT), b IS NULL FROM v WHERE i % 6 = ?1 % 6;
SELECT date('2000-02-28', '+' || (?1 * 13 % 40) || ' days'), strftime('%j %w', '2023-01-01', '+' || ?1 * 11 || ' days'), julianday('2024-03-01') - julianday('2024-02-01', '+' || ?1 || ' hours');
SELECT max(a, i, ?1), min(a, i), nullif(i % 3, 0), coalesce(b, 'none') FROM v WHERE i > 24;
