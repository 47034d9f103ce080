// What answering works out again and again: parsed workloads, completed
// targets, spaces, their default schedules, and which schedules they take.
//
// All of it follows from text and this program alone, so an entry never goes
// stale. Each table is emptied when it is full.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_SERVER_QUERY_BEST_MEMO_H_
#define REGATTA_SERVER_QUERY_BEST_MEMO_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "absl/status/statusor.h"
#include "compiler/expr/expr.h"
#include "compiler/space/space.h"
#include "compiler/target/target.h"
#include "regatta/v1/trial.pb.h"

namespace regatta {

// A target as code is generated for it.
struct CompletedTarget {
  Target target;                 // every field filled in
  std::string text;              // of it
  std::string compiler_version;  // that generates code for it
};

// Gives a target what the two functions say of it.
std::function<absl::StatusOr<CompletedTarget>(const Target&)> MakeTargetWith(
    std::function<absl::StatusOr<Target>(const Target&)> complete,
    std::function<absl::StatusOr<std::string>(const Target&)> compiler_version);

class BestMemo {
 public:
  // InvalidArgument as ParseWorkload.
  absl::StatusOr<std::shared_ptr<const Workload>> Parse(std::string_view text);

  // What `make` gives for the target text; what fails is not kept.
  using MakeTarget =
      std::function<absl::StatusOr<CompletedTarget>(const Target&)>;
  absl::StatusOr<std::shared_ptr<const CompletedTarget>> Complete(
      const std::string& text, const MakeTarget& make);

  // InvalidArgument when no rule covers the workload on the target.
  absl::StatusOr<std::shared_ptr<const Space>> SpaceOf(
      const Workload& workload, const CompletedTarget& target, int threads);
  absl::StatusOr<std::string> DefaultSchedule(const Workload& workload,
                                              const CompletedTarget& target,
                                              int threads);

  // Whether this compiler was found to take the schedule for the workload (in
  // its normal form), by NoteTaken. False: not known.
  bool IsTaken(const v1::ScheduleText& schedule, std::string_view workload,
               const CompletedTarget& target, int threads) const;
  void NoteTaken(const v1::ScheduleText& schedule, std::string_view workload,
                 const CompletedTarget& target, int threads);

 private:
  // Tens of megabytes at most: a workload takes about 4 KiB, a space 50.
  static constexpr size_t kMaxTexts = 8192;
  static constexpr size_t kMaxSpaces = 256;
  static constexpr size_t kMaxTaken = 32768;  // of about 500 bytes

  template <typename Value>
  class Table {
   public:
    explicit Table(size_t limit) : limit_(limit) {}
    // Null when it is not there.
    std::shared_ptr<const Value> Find(const std::string& key) const {
      std::lock_guard lock(mutex_);
      const auto found = entries_.find(key);
      return found == entries_.end() ? nullptr : found->second;
    }
    std::shared_ptr<const Value> Keep(const std::string& key, Value value) {
      auto kept = std::make_shared<const Value>(std::move(value));
      std::lock_guard lock(mutex_);
      if (entries_.size() >= limit_) entries_.clear();
      return entries_.try_emplace(key, std::move(kept)).first->second;
    }

   private:
    const size_t limit_;
    mutable std::mutex mutex_;
    std::unordered_map<std::string, std::shared_ptr<const Value>> entries_;
  };

  Table<Workload> workloads_{kMaxTexts};
  Table<CompletedTarget> targets_{kMaxTexts};
  Table<Space> spaces_{kMaxSpaces};
  Table<std::string> defaults_{kMaxTexts};
  Table<std::monostate> taken_{kMaxTaken};
};

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_BEST_MEMO_H_
