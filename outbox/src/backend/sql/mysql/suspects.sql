-- At most so many of those with which a worker died, over all types. The arms, then suspects.
(SELECT turn, room, lane, available_at, seq FROM ({arms}) AS suspect ORDER BY available_at, seq LIMIT ?)
