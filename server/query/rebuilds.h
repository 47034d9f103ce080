// Whether today's compiler gives the very binaries that were measured.
//
// A row that was measured with another version of the compiler is compatible,
// not exact: the code may differ. Building its schedule again settles that, but
// takes a compiler and far longer than a lookup. So it is done beside the
// lookups, once a row, and what was found is remembered.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_SERVER_QUERY_REBUILDS_H_
#define REGATTA_SERVER_QUERY_REBUILDS_H_

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/status/statusor.h"
#include "compiler/space/space.h"
#include "regatta/v1/trial.pb.h"
#include "server/query/best_memo.h"

namespace regatta {

// A recorded binary and what it is built from.
struct RecordedBinary {
  std::string workload;  // in its normal form
  std::shared_ptr<const CompletedTarget> target;
  int threads = 1;
  v1::ScheduleText schedule;  // one that the compiler takes
  std::string hash;           // of the binary that was measured; not empty
};

// Says whether the compiler gives it. False may mean "not known yet".
using GivesBinary = std::function<bool(const RecordedBinary&)>;

// The hash of what a board would build for the schedule: BoardBinaryHash
// (compiler/compile.h), in programs that have a code generator.
using BinaryHash = std::function<absl::StatusOr<std::string>(
    const Space& space, std::string_view schedule)>;

// Builds before it answers: tens of milliseconds.
GivesBinary BuildOnTheSpot(BinaryHash hash);

class Rebuilds {
 public:
  // `hash` is called on threads of this object's own, one call at a time,
  // which run only while processors would idle. A call that ends with
  // ResourceExhausted says nothing of the binary, which is built when it is
  // asked about again. No more than `max_known` binaries are remembered; the
  // oldest is forgotten first.
  explicit Rebuilds(BinaryHash hash, size_t max_known = kMaxKnown);
  // Waits for the build that runs, if any, which gets the ordinary priority
  // where the system allows that; the others are dropped.
  ~Rebuilds();
  Rebuilds(const Rebuilds&) = delete;
  Rebuilds& operator=(const Rebuilds&) = delete;

  // What is known, at once. A binary that nobody has asked about is built soon,
  // unless kMaxWaiting others wait: then it is when it is asked about again.
  bool Gives(const RecordedBinary& binary);
  // Returns when nothing waits or is built.
  void WaitUntilIdle();

 private:
  static constexpr size_t kMaxWaiting = 1024;
  static constexpr size_t kMaxKnown = 32768;

  void Run();
  // Absent: this machine lacked something.
  std::optional<bool> BuildWhileIdle(const RecordedBinary& binary);
  void Remember(const std::string& key, bool gives);

  const BinaryHash hash_;
  const size_t max_known_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // By Key. False: another binary, or not to be built.
  std::unordered_map<std::string, bool> known_;
  std::deque<std::string> oldest_;         // the keys of known_
  std::unordered_set<std::string> asked_;  // keys that wait or are being built
  std::deque<std::pair<std::string, RecordedBinary>> waiting_;
  std::atomic<bool> closing_ = false;  // set under the mutex
  std::atomic<pid_t> builder_ = 0;     // the thread that builds; 0: none
  std::thread thread_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_REBUILDS_H_
