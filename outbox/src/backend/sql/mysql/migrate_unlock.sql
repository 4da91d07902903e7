-- schema.
SELECT RELEASE_LOCK(CONCAT('outbox ', MD5(COALESCE(?, DATABASE(), ''))))
