CREATE TABLE t(id INTEGER PRIMARY KEY, word TEXT, n INTEGER);
WITH RECURSIVE r(i, x) AS (SELECT 1, (?1 * 7919) % 10007 UNION ALL SELECT i + 1, (x * 31 + 17) % 10007 FROM r WHERE i < 24)
INSERT INTO t SELECT i, substr('alphabetic order of quick brown foxes', 1 + x % 30, 2 + x % 7), x FROM r;
SELECT word, substr(word, (n % 9) - 5), substr(word, (n % 7) - 6, 3) FROM t WHERE n % 3 = ?1 % 3;
SELECT word FROM t WHERE word LIKE '%' || substr('aeiou', 1 + ?1 % 5, 1) || '%' ORDER BY id;
SELECT word FROM t WHERE word GLOB CASE ?1 % 6 WHEN 0 THEN '[a-m]*' WHEN 1 THEN '[^a-m]*' WHEN 2 THEN '*[^n-z]?' WHEN 3 THEN '[abc]*' WHEN 4 THEN '*o*' ELSE '?[ -z]*' END ORDER BY id;
SELECT replace(word, CASE ?1 % 4 WHEN 0 THEN 'o' WHEN 1 THEN 'ab' WHEN 2 THEN 'zz' ELSE ' ' END, CASE ?1 % 3 WHEN 0 THEN '' WHEN 1 THEN '--' ELSE 'a rather long replacement that fills what there is of room' END) FROM t ORDER BY id;
SELECT trim(word, CASE WHEN ?1 % 9 = 4 THEN NULL ELSE 'ab' END) FROM t WHERE id = 3;
SELECT upper(word), trim(word, 'ao '), instr(word, 'o'), hex(substr(word, 1, 2)), length(word) FROM t WHERE id % 5 = ?1 % 5;
SELECT word, count(*) FROM t GROUP BY word COLLATE NOCASE ORDER BY 2 DESC, 1;
SELECT group_concat(word, CASE WHEN ?1 % 2 THEN '/' ELSE ', ' END) FROM t;
SELECT printf('%-10s|%5.2f|%03d|%q', word, n / 7.0, n % 100, word) FROM t WHERE id <= 1 + ?1 % 5;
