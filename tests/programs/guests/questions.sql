-- SPDX-License-Identifier: MIT
--
-- What the scenario asks PostgreSQL after the load.
SELECT count(*), sum(abalance) = (SELECT sum(tbalance) FROM pgbench_tellers) FROM pgbench_accounts;
SELECT count(*) FROM pgbench_history;
CREATE TABLE words AS SELECT i, md5(i::text) AS text FROM generate_series(1, 20000) AS i;
CREATE INDEX ON words(text);
ANALYZE words;
SELECT count(*), min(text), max(text) FROM words WHERE text LIKE 'a%7';
SELECT text FROM words WHERE text = md5('77');
SELECT sum(length(a.text)) FROM words a JOIN words b ON a.i = b.i * 2;
WITH RECURSIVE f(a, b) AS (
    SELECT 0::numeric, 1::numeric UNION ALL SELECT b, a + b FROM f WHERE a < 1e30
)
SELECT max(a) FROM f;
SELECT jsonb_pretty('{"key": [1, 2, {"deep": null}]}'::jsonb -> 'key');
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'caught'; END $$;
SELECT 1 / 0;
VACUUM words;
SELECT regexp_replace('a1b22', '[0-9]+', '#', 'g'), to_char(1234.5, '9,999.99'), sqrt(2.0::float8);
