-- One row in a hundred, at places that look random but are the same in every trial: nearly each change is the first
-- of its page since the checkpoint.
UPDATE account SET balance = balance + 1
WHERE id IN (
  SELECT (n::bigint * 7919 % (SELECT max(id) FROM account) + 1)::integer
  FROM generate_series(1, (SELECT count(*) FROM account) / 100) AS n
);
