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

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

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
  // `hash` is called on a thread of this object's own, one call at a time,
  // which runs only while processors would idle.
  explicit Rebuilds(BinaryHash hash);
  // Waits for the build that runs, if any; the others are dropped.
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
  static constexpr size_t kMaxKnown = 32768;  // emptied when full

  void Run();

  const BinaryHash hash_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // By Key; absent: not asked about. False: another binary, not built yet, or
  // not to be built.
  std::unordered_map<std::string, bool> known_;
  std::deque<RecordedBinary> waiting_;
  bool building_ = false;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_REBUILDS_H_
