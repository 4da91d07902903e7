-- Two keys with one slot only wait for each other. key.
CRC32(CAST(? AS BINARY)) % 16384
