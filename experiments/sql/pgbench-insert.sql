\set account random(1, 100000)
INSERT INTO visit (account, happened_at, note) VALUES (:account, now(), 'one visit');
