// Looking after a tuning log: is it whole, and a copy of it.
//
// Thread safety: all methods may be called from any thread, while others read
// and write the log.
#ifndef REGATTA_STORAGE_LOG_UPKEEP_H_
#define REGATTA_STORAGE_LOG_UPKEEP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace regatta {

// What a finding says of the file, and so what is done about it.
enum class FindingKind {
  // The file does not hold what was written to it: its pages or indexes are
  // broken, bytes cannot be read, have another digest or other columns than
  // theirs, rows that others point to are gone, or numbers would be handed out
  // twice. Going on could lose more: such a log takes nothing more, and no
  // restore puts it in a log's place.
  kDamage,
  // The file holds what it was given, but values of it disagree with one
  // another, such as a time with its blocks. What arrives is checked for all of
  // it first (validate.h), so it is of an older release. Somebody should look;
  // the log goes on.
  kContent,
  // Of what the records give; RebuildBest mends it. The log goes on.
  kDerived,
};

// Something that a whole log would not hold.
struct LogFinding {
  std::string where;  // "record 17 (trial 1/0/5)"
  std::string what;
  FindingKind kind = FindingKind::kDamage;
};

// Where a long operation is. False: stop, with Cancelled.
using UpkeepProgress = std::function<bool(
    const std::string& phase, int64_t done, int64_t total /* 0: unknown */)>;

// What a check has come to.
struct LogCheck {
  int64_t records = 0;  // that were read
  // All of them, told or not; of the file's pages no more than kMaxFindings,
  // the last of which then says that there may be others.
  int64_t findings = 0;
  // Of which are of these kinds. Unknown, 0, of another process's check.
  int64_t damage = 0, derived = 0;
};

class LogUpkeep {
 public:
  // A log that is damaged all over says the same a million times.
  static constexpr int64_t kMaxFindings = 100;

  virtual ~LogUpkeep() = default;

  // Reads everything, as of one moment, and tells `visit` of the first
  // kMaxFindings things that are wrong: the file's pages and indexes; records
  // that cannot be read, are malformed, stand under another key than theirs or
  // with columns that are not theirs; trial ids below which ordinals could be
  // handed out again; publications and best-known rows that the records do not
  // bear out; jobs that cannot be read. Records may arrive meanwhile.
  // `progress` is asked several times a second, whatever is being read; it
  // hears of the phases again when the check is asked to end its state and goes
  // on with a copy of the log, made as StreamBackup makes one. An error only
  // when it stopped the check, the log cannot be read at all, or there is no
  // room for that copy.
  virtual absl::StatusOr<LogCheck> Check(
      const std::function<void(const LogFinding&)>& visit,
      const UpkeepProgress& progress) const = 0;

  // Writes a copy of the log, as of one moment of the call, to `path`, which
  // must not exist, and syncs it; the file is its owner's alone. Records may
  // arrive meanwhile. `progress` hears of the pages from the first on again
  // when the state that is copied cannot be held to the end; the copy then goes
  // on at the pace of the writer, for which no state is held. The copy is a log of its
  // own with the same LogId. Works, too, while the log's file is gone from its
  // place (see Append): what was stored is then saved. Nothing of it is left
  // after an error.
  virtual absl::Status Backup(const std::string& path,
                              const UpkeepProgress& progress) const = 0;

  // Calls `data` with the bytes of such a copy, in order; an error of it ends
  // the call and is returned. The copy passes through a file beside the log
  // that nobody else can name, so that the log is held to one state for no
  // longer than its disk takes, however slow `data` is.
  virtual absl::Status StreamBackup(
      const std::function<absl::Status(std::string_view bytes)>& data,
      const UpkeepProgress& progress) const = 0;
};

}  // namespace regatta

#endif  // REGATTA_STORAGE_LOG_UPKEEP_H_
