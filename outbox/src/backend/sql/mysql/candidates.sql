-- What a claim would take: a read, which takes no lock. The arms, then the limit.
--
-- One arm for each type and lane (there is no LATERAL on MariaDB): each has a scan of its own, of at most the batch, so
-- nobody's backlog is read for another's events. The places are then dealt round the types: first of each, second of
-- each, …, which is the fairness.
SELECT seq, turn FROM (
    SELECT seq, turn, room, ROW_NUMBER() OVER (PARTITION BY turn ORDER BY lane, available_at, seq) AS place
    FROM ({arms}) AS found) AS dealt
WHERE place <= room
ORDER BY place, turn LIMIT ?
