-- SPDX-License-Identifier: MIT
--
-- The sqlite3 workload, all in memory: inserts, indexes, joins, aggregates, text functions, updates
-- and a window function. @ROWS@ is replaced by the scale.
CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, city INTEGER, score REAL);
CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
INSERT INTO city SELECT i, 'city-' || (i * 7919 % 503) FROM n;
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @ROWS@)
INSERT INTO person
SELECT i, 'name-' || (i * 2654435761 % 1000003), i * 40503 % 500 + 1, (i * 31 % 1009) / 7.0 FROM n;
COMMIT;
CREATE INDEX person_name ON person(name);
CREATE INDEX person_city ON person(city, score);
SELECT city.name, count(*), round(sum(score), 3), max(person.name)
FROM person JOIN city ON city.id = person.city GROUP BY city.name ORDER BY 2 DESC, 1 LIMIT 20;
SELECT count(*), sum(length(upper(name))) FROM person WHERE name LIKE '%77%' OR name GLOB '*1*3';
UPDATE person SET score = score * 1.01 WHERE id % 3 = 0;
SELECT round(sum(score), 3) FROM person WHERE name BETWEEN 'name-3' AND 'name-6';
SELECT name, place FROM (
    SELECT name, row_number() OVER (PARTITION BY city ORDER BY score DESC, id) AS place FROM person
) WHERE place = 1 ORDER BY name LIMIT 20;
DELETE FROM person WHERE id % 5 = 0;
SELECT count(DISTINCT name), min(score), max(id) FROM person;
