-- Evidence of other logs: in cells of its own, so that it never changes what
-- this log's own records answer.
CREATE TABLE cell_2(
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workload(id),
  device_class TEXT NOT NULL,
  threads INTEGER NOT NULL,
  cache INTEGER NOT NULL,    -- v1.CacheState
  imported INTEGER NOT NULL, -- of other logs
  UNIQUE (workload_id, device_class, threads, cache, imported)
);
INSERT INTO cell_2 SELECT id, workload_id, device_class, threads, cache, 0
  FROM cell;
DROP TABLE cell;
ALTER TABLE cell_2 RENAME TO cell;

-- Jobs of other logs, as they were asked for.
CREATE TABLE imported_job(
  id INTEGER PRIMARY KEY,
  log_id TEXT NOT NULL,
  job_id INTEGER NOT NULL,
  created_unix_ms INTEGER NOT NULL,
  request BLOB NOT NULL,     -- v1.SubmitJobRequest
  UNIQUE (log_id, job_id)
);
