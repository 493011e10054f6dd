CREATE TABLE log(n INTEGER PRIMARY KEY, what TEXT);
CREATE TABLE acc(id INTEGER PRIMARY KEY, name TEXT UNIQUE COLLATE NOCASE, sum INTEGER CHECK (sum > -1000));
CREATE TRIGGER up AFTER UPDATE ON acc WHEN new.sum <> old.sum BEGIN INSERT INTO log(what) VALUES (new.name || ' ' || (new.sum - old.sum)); END;
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 30)
INSERT INTO acc SELECT i, 'name' || i, (i * ?1 * 37) % 500 - 200 FROM r;
INSERT INTO acc(name, sum) VALUES ('NAME' || (?1 % 40), 5);
INSERT INTO acc(name, sum) VALUES ('nam', 6);
INSERT INTO acc(name, sum) VALUES ('Name1' || (?1 % 2), 7) ON CONFLICT(name) DO UPDATE SET sum = sum + 1;
UPDATE acc SET sum = sum - ?1 * 20 WHERE id % (2 + ?1 % 4) = 0;
UPDATE acc SET sum = -2000 WHERE id = ?1;
DELETE FROM acc WHERE sum BETWEEN -50 AND ?1 * 3;
SAVEPOINT one;
DELETE FROM acc WHERE id > 10;
ROLLBACK TO one;
SELECT count(*), sum(sum), min(name) FROM acc;
SELECT name, sum FROM acc ORDER BY sum LIMIT 8;
SELECT what FROM log ORDER BY n DESC LIMIT 5;
SELECT name FROM acc WHERE name = 'NAME' || (?1 % 30) COLLATE NOCASE;
