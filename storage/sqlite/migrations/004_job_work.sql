-- Work that jobs have out, a row each: a job's checkpoint used to list all of it,
-- and was written anew whenever some changed. Checkpoints of before still do.
CREATE TABLE job_work(
  job_id INTEGER NOT NULL,
  task INTEGER NOT NULL,
  number INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (job_id, task, number)
) WITHOUT ROWID;
