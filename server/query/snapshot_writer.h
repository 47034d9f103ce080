// Writes snapshots: every best-known answer of a tuning log in one immutable
// file (snapshot_format.h).
#ifndef REGATTA_SERVER_QUERY_SNAPSHOT_WRITER_H_
#define REGATTA_SERVER_QUERY_SNAPSHOT_WRITER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/best_memo.h"
#include "server/query/rebuilds.h"
#include "storage/tuning_log.h"

namespace regatta {

// What a server knows of a class beyond its log.
struct SnapshotClass {
  std::string name;
  std::string target;            // complete target text; "": not known
  std::string measure_protocol;  // in use; "": not known
  bool simulated = false;
  int cores = 0;  // of its boards; 0: not known
};

struct SnapshotOptions {
  std::vector<SnapshotClass> classes;  // none of a log that nobody serves
  std::string compiler_version;        // of this program, for CPUs
  BestMemo::MakeTarget make_target;
  // Asked about rows that another compiler measured. Null: none is marked.
  GivesBinary gives_binary;
  // More rows are OutOfRange. 0: any number.
  size_t max_rows = 0;
  // Hears of answers.
  UpkeepProgress progress;
};

// The bytes of the file. The same rows, classes, program and answers of
// `gives_binary` give the same bytes, whenever and wherever. FailedPrecondition
// when a table would grow past 2^32 entries or the texts past 4 GiB, Cancelled
// when `progress` stopped it; otherwise fails only as the log does.
absl::StatusOr<std::string> WriteSnapshot(const TuningLog& log,
                                          const SnapshotOptions& options);

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_SNAPSHOT_WRITER_H_
