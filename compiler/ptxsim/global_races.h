// Finds races in global memory, between the blocks of a launch and within one.
//
// Blocks have no order among themselves, except the one that atomics give: a
// block that did a fence and then a strong access to some address is ordered
// before a block that later does a strong access to it (what "the last block
// adds up" kernels rely on). Otherwise as SharedRaces. Memory: 10 bytes for
// each byte touched.
#ifndef REGATTA_COMPILER_PTXSIM_GLOBAL_RACES_H_
#define REGATTA_COMPILER_PTXSIM_GLOBAL_RACES_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/ptxsim/race_clocks.h"
#include "compiler/ptxsim/shared_races.h"

namespace regatta::ptxsim {

class GlobalRaces {
 public:
  // `granule` as for SharedRaces; `buffers`: how many the memory has.
  GlobalRaces(size_t buffers, uint32_t granule);

  // Block `number` runs from here on.
  void StartBlock(uint32_t number);
  // The running block executed a fence of the whole device.
  void Fence() { fenced_ = true; }

  struct Result {
    Conflict conflict;
    uint32_t block = 0;  // of the other access
  };
  // An access to `offset` within buffer `buffer`, which has `buffer_bytes`.
  Result Access(size_t buffer, uint64_t buffer_bytes, uint64_t offset,
                uint32_t bytes, AccessKind kind, Stamp stamp, const Clock& now);

 private:
  struct Cell {
    Stamp write = 0, first_read = 0, other_read = 0;
    uint32_t write_block = 0, first_block = 0, other_block = 0;
  };
  static constexpr uint64_t kPageCells = 1024;
  using Page = std::unique_ptr<Cell[]>;
  using BlockSet = std::vector<uint64_t>;  // a bit for each block

  bool Ordered(Stamp stamp, uint32_t block, const Clock& now,
               uint32_t thread) const;
  Result Touch(Cell& cell, bool write, Stamp stamp, const Clock& now) const;
  void Synchronise(size_t buffer, uint64_t offset);

  int shift_;
  uint32_t block_ = 0;
  bool fenced_ = false;
  BlockSet known_;  // blocks that are ordered before the running one
  std::unordered_map<uint64_t, BlockSet> released_;  // by address
  std::vector<std::vector<Page>> pages_;             // of each buffer
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_GLOBAL_RACES_H_
