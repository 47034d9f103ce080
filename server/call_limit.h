// How many calls of a kind may run at once: each holds threads of the server.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_SERVER_CALL_LIMIT_H_
#define REGATTA_SERVER_CALL_LIMIT_H_

#include <atomic>

namespace regatta {

class CallLimit {
 public:
  explicit CallLimit(int most) : most_(most) {}

  // The place of a call, until destroyed.
  class Slot {
   public:
    // `limit` outlives it.
    explicit Slot(CallLimit* limit)
        : limit_(limit), granted_(limit->running_++ < limit->most_) {}
    ~Slot() { --limit_->running_; }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    // False: there are too many; the call must be refused.
    bool granted() const { return granted_; }

   private:
    CallLimit* const limit_;
    const bool granted_;
  };

 private:
  const int most_;
  std::atomic<int> running_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_CALL_LIMIT_H_
