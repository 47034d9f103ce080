-- Neighbours are found in the index alone, without reading a workload's row.
DROP INDEX workload_by_structure;
CREATE INDEX workload_by_structure ON workload(structure, key, extents);
