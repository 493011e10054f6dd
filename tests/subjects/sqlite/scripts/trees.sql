CREATE TABLE node(id INTEGER PRIMARY KEY, parent INTEGER, label TEXT);
WITH RECURSIVE r(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM r WHERE i < 22)
INSERT INTO node SELECT i, max(1, (i * (?1 % 9 + 2)) % i), 'n' || i % 7 FROM r;
INSERT INTO node VALUES (1, NULL, 'root');
WITH RECURSIVE down(id, depth, path) AS (SELECT 1, 0, 'root' UNION ALL SELECT n.id, depth + 1, path || '/' || n.label FROM node n JOIN down ON n.parent = down.id WHERE depth < 6)
SELECT depth, count(*), max(path) FROM down GROUP BY depth;
SELECT json_group_array(label), json_array_length(json_group_array(id)) FROM node WHERE parent = 1 + ?1 % 4;
SELECT json_extract('{"a":[1,2,{"b":' || ?1 || '}],"c":"x\u0041"}', '$.a[2].b', '$.c', '$.a[#-1]');
SELECT json_set('{"a":1}', '$.b', ?1, '$.a', json('[1,2]')), json_type('[1.5,null]', '$[' || (?1 % 3) || ']');
SELECT key, value, type FROM json_each('[1,"two",null,' || ?1 || ']') WHERE ?1 % 2;
SELECT label FROM node WHERE label GLOB '[^' || substr('a-np-z', 1 + 3 * (?1 % 2), 3) || ']*' ORDER BY id LIMIT 3;
SELECT replace(group_concat(label, ' '), 'n' || (?1 % 7), CASE WHEN ?1 % 4 = 0 THEN 'node number ' || ?1 ELSE 'N' END) FROM node;
