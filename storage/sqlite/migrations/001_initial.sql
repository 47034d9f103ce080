-- The first layout of a tuning log. The version is PRAGMA user_version, set by
-- the code that runs the migrations. A file here is never edited once released:
-- a change of layout is the next number.

-- What identifies the log.
CREATE TABLE meta(
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO meta VALUES ('log_id', lower(hex(randomblob(16))));

CREATE TABLE workload(
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  family TEXT NOT NULL,
  structure TEXT NOT NULL,   -- equal: differs in shape only
  extents TEXT NOT NULL      -- "512,512,512"
);
CREATE INDEX workload_by_structure ON workload(structure);

-- What a best-known answer is for; records point here instead of repeating it.
CREATE TABLE cell(
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workload(id),
  device_class TEXT NOT NULL,
  threads INTEGER NOT NULL,
  cache INTEGER NOT NULL,    -- v1.CacheState
  UNIQUE (workload_id, device_class, threads, cache)
);

-- The part of a TrialResult that many records share (workload and target text,
-- versions, device), as a serialised TrialResult with those fields only.
CREATE TABLE context(
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,  -- SHA-256 of bytes
  bytes BLOB NOT NULL
);

-- Append-only. The result is context.bytes, then body, read as one serialised
-- TrialResult, with trial_id and binary_hash from their columns. The other
-- columns repeat what queries need.
CREATE TABLE record(
  id INTEGER PRIMARY KEY,
  trial_id TEXT NOT NULL UNIQUE,
  cell_id INTEGER NOT NULL REFERENCES cell(id),
  context_id INTEGER NOT NULL REFERENCES context(id),
  job_id INTEGER NOT NULL,
  outcome INTEGER NOT NULL,     -- v1.Outcome
  kind INTEGER NOT NULL,        -- v1.TrialKind
  abandoned INTEGER NOT NULL,
  time_ns INTEGER NOT NULL,
  schedule_hash INTEGER NOT NULL,  -- 64 bits of space, version and text
  binary_hash BLOB,             -- 32 bytes; null when it is not SHA-256 hex
  recorded_unix_ms INTEGER NOT NULL,
  body BLOB NOT NULL
);
CREATE INDEX record_by_cell ON record(cell_id);
CREATE INDEX record_ok ON record(cell_id, schedule_hash) WHERE outcome = 1;
CREATE INDEX record_wrong ON record(cell_id, schedule_hash) WHERE outcome = 3;
CREATE INDEX record_default ON record(cell_id, time_ns)
  WHERE outcome = 1 AND kind = 1 AND abandoned = 0 AND time_ns > 0;

-- Verdicts of confirmations. Append-only.
CREATE TABLE publication(
  id INTEGER PRIMARY KEY,
  cell_id INTEGER NOT NULL REFERENCES cell(id),
  record_id INTEGER NOT NULL REFERENCES record(id),
  time_ns INTEGER NOT NULL,
  low_ns INTEGER NOT NULL,
  high_ns INTEGER NOT NULL,
  default_ns INTEGER NOT NULL,
  speedup REAL NOT NULL,
  speedup_low REAL NOT NULL,
  speedup_high REAL NOT NULL,
  job_id INTEGER NOT NULL,
  unix_ms INTEGER NOT NULL
);
CREATE INDEX publication_by_cell ON publication(cell_id);

-- The view: derived from record and publication alone.
CREATE TABLE best_known(
  cell_id INTEGER PRIMARY KEY REFERENCES cell(id),
  record_id INTEGER NOT NULL REFERENCES record(id),
  publication_id INTEGER REFERENCES publication(id)
);

CREATE TABLE job(
  id INTEGER PRIMARY KEY,
  request_id TEXT UNIQUE,       -- null when the client gave none
  created_unix_ms INTEGER NOT NULL,
  request BLOB NOT NULL,        -- v1.SubmitJobRequest
  status BLOB,                  -- v1.Job; null until first saved
  checkpoint BLOB
);

-- Ordinals below next have been handed out.
CREATE TABLE ordinal(
  job_id INTEGER NOT NULL,
  task INTEGER NOT NULL,
  next INTEGER NOT NULL,
  PRIMARY KEY (job_id, task)
) WITHOUT ROWID;
