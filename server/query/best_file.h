// Best-known answers from a file, without a server: a snapshot, or a tuning log
// that no server holds.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_SERVER_QUERY_BEST_FILE_H_
#define REGATTA_SERVER_QUERY_BEST_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "regatta/v1/tuning_service.pb.h"
#include "server/query/best_request.h"
#include "server/query/class_facts_book.h"
#include "server/query/snapshot.h"
#include "storage/tuning_log.h"

namespace regatta {

// The machine that asks, where that is known: a file does not say how many
// cores a class has, nor what its boards are today.
struct AskingHost {
  std::string device_class;
  std::string target;  // complete target text
  int cores = 0;
};

struct BestFileOptions {
  // See BestRequestContext.
  std::function<absl::StatusOr<Target>(const Target&)> complete;
  std::function<absl::StatusOr<std::string>(const Target&)> compiler_version;
  GivesBinary gives_binary;
  std::optional<AskingHost> host;
  // A log with no more best-known rows than this is read whole when it is
  // opened, about 0.1 ms a row, so that questions need no database. 0: none is.
  size_t read_whole_rows = 0;
};

class BestFile {
 public:
  // Errors as Snapshot::Open and OpenTuningLog; a log is kept from servers for
  // as long as the object lives, and a held one is FailedPrecondition, naming
  // who holds it.
  static absl::StatusOr<std::unique_ptr<BestFile>> OpenSnapshot(
      const std::string& path, BestFileOptions options);
  static absl::StatusOr<std::unique_ptr<BestFile>> OpenLog(
      const std::string& path, BestFileOptions options);
  // Whichever of the two the file is.
  static absl::StatusOr<std::unique_ptr<BestFile>> Open(
      const std::string& path, BestFileOptions options);

  // The answer that a server would give that knows of the fleet what the file
  // says. NotFound for a class that is not in the file, listing those that are;
  // FailedPrecondition when it has fewer cores than asked for.
  absl::StatusOr<v1::BestAnswer> Answer(const v1::BestRequest& request,
                                        int64_t now_unix_ms);

 private:
  // Answers kept; the table is emptied when it is full.
  static constexpr size_t kMaxAnswers = 16384;

  BestFile(std::string path, BestFileOptions options);
  absl::Status StartSnapshot();
  absl::Status StartLog();
  absl::Status ReadWhole();
  absl::Status Start(const BestSource* source);
  absl::Status CheckClass(const std::string& name, int threads) const;

  const std::string path_;
  const BestFileOptions options_;
  // One of the two is set; both of a log that was read whole, which stays
  // locked.
  std::unique_ptr<Snapshot> snapshot_;
  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<ClassFactsBook> facts_;  // of the log
  std::vector<std::string> classes_;       // sorted
  BestMemo memo_;
  BestRequestContext context_;  // but for the time
  std::mutex mutex_;
  // By the request's bytes. Neither kind of file changes while it is open.
  std::unordered_map<std::string, std::shared_ptr<const v1::BestAnswer>>
      answers_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_BEST_FILE_H_
