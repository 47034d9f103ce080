// The cp.async copies of a warp that have not landed yet.
#ifndef REGATTA_COMPILER_PTXSIM_ASYNC_COPIES_H_
#define REGATTA_COMPILER_PTXSIM_ASYNC_COPIES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace regatta::ptxsim {

class AsyncCopies {
 public:
  struct Copy {
    uint32_t shared_address;
    uint8_t lane;
    uint8_t bytes;
    uint32_t pc;
    uint32_t group;  // of its lane
    std::array<std::byte, 16> data;
  };

  void Reset() {
    pending_.clear();
    committed_.fill(0);
  }

  // Joins the lane's open group.
  void Start(Copy copy) {
    copy.group = committed_[copy.lane];
    pending_.push_back(copy);
  }
  void Commit(uint32_t mask) {
    for (int lane = 0; lane < 32; ++lane)
      committed_[lane] += (mask >> lane) & 1;
  }
  // Calls land(copy) for the copies of the lanes in `mask` that are not in the
  // newest `in_flight` committed groups of their lane, nor in the open group
  // (unless `open_too`), in the order in which they were started.
  template <typename Land>
  void Wait(uint32_t mask, uint32_t in_flight, bool open_too, Land land) {
    size_t kept = 0;
    for (size_t i = 0; i < pending_.size(); ++i) {
      const Copy& copy = pending_[i];
      const bool done =
          open_too || uint64_t{copy.group} + in_flight < committed_[copy.lane];
      if (((mask >> copy.lane) & 1) != 0 && done) {
        land(copy);
      } else {
        if (kept != i) pending_[kept] = copy;
        ++kept;
      }
    }
    pending_.resize(kept);
  }

 private:
  std::vector<Copy> pending_;
  std::array<uint32_t, 32> committed_ = {};
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_ASYNC_COPIES_H_
