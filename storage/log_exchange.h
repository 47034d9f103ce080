// Everything in a tuning log as entries, and entries of other logs into it.
//
// What another log says is evidence of its boards, not of ours: it is kept
// apart (BestKey::imported) and never changes what our own records answer.
//
// Thread safety: all methods may be called from any thread, while others read
// and write the log.
#ifndef REGATTA_STORAGE_LOG_EXCHANGE_H_
#define REGATTA_STORAGE_LOG_EXCHANGE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "regatta/v1/log_service.pb.h"
#include "storage/best_source.h"

namespace regatta {

struct ImportOptions {
  // Of where the entries are from, for people: provenance "import:NAME". 1 to
  // 100 printable characters.
  std::string name;
  // What a workload's text says of it. An error, or another key than the one in
  // the entry, refuses the entry.
  std::function<absl::StatusOr<WorkloadInfo>(const std::string& text)> describe;
  // Whether target and schedule of a record make sense, where the program can
  // tell. An error refuses the record. Empty: they are not looked at.
  std::function<absl::Status(const v1::TrialSpec& spec)> check_spec;
};

class LogExchange {
 public:
  virtual ~LogExchange() = default;

  // Calls `visit` for every entry, in the order of LogEntry's fields, as of the
  // call, until it returns false. Records that arrive meanwhile are left out.
  // What was imported is among the rest. The same log gives the same entries,
  // and so does a log that holds nothing but this export, but for the head's
  // log_id and the records' provenance.
  virtual absl::Status Export(
      const std::function<bool(const v1::LogEntry&)>& visit) const = 0;

  // Stores what is new, durably, in one transaction, and says what became of
  // each entry. A record comes before the publications that name it. Entries of
  // this very log are kKnown; what a restore of it lost comes in as another
  // log's would; the rest is refused.
  // InvalidArgument names an option; other errors are as those of Append, and
  // nothing is stored then.
  virtual absl::StatusOr<std::vector<v1::ImportVerdict>> Import(
      absl::Span<const v1::LogEntry* const> entries,
      const ImportOptions& options) = 0;
};

}  // namespace regatta

#endif  // REGATTA_STORAGE_LOG_EXCHANGE_H_
