#include "compiler/ptxsim/global_races.h"

#include <bit>

namespace regatta::ptxsim {
namespace {

void Merge(std::vector<uint64_t>& into, const std::vector<uint64_t>& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] |= from[i];
}

}  // namespace

GlobalRaces::GlobalRaces(size_t buffers, uint32_t granule)
    : shift_(std::countr_zero(granule)), pages_(buffers) {}

void GlobalRaces::StartBlock(uint32_t number) {
  block_ = number;
  fenced_ = false;
  known_.clear();
}

inline bool GlobalRaces::Ordered(Stamp stamp, uint32_t block, const Clock& now,
                                 uint32_t thread) const {
  if (stamp == 0) return true;
  if (block == block_) return RaceClocks::Ordered(stamp, now, thread);
  return block / 64 < known_.size() && ((known_[block / 64] >> block % 64) & 1);
}

GlobalRaces::Result GlobalRaces::Touch(Cell& cell, bool write, Stamp stamp,
                                       const Clock& now) const {
  const uint32_t thread = StampThread(stamp);
  const auto races_with = [&](Stamp other, uint32_t block) {
    return !Ordered(other, block, now, thread) &&
           (stamp & other & kStampStrong) == 0;
  };
  if (races_with(cell.write, cell.write_block)) {
    return {{cell.write, true}, cell.write_block};
  }
  if (write) {
    if (races_with(cell.first_read, cell.first_block)) {
      return {{cell.first_read, false}, cell.first_block};
    }
    if (races_with(cell.other_read, cell.other_block)) {
      return {{cell.other_read, false}, cell.other_block};
    }
    cell.write = stamp;
    cell.write_block = block_;
  } else if (Ordered(cell.first_read, cell.first_block, now, thread)) {
    cell.first_read = stamp;
    cell.first_block = block_;
  } else {
    cell.other_read = stamp;
    cell.other_block = block_;
  }
  return {};
}

void GlobalRaces::Synchronise(size_t buffer, uint64_t offset) {
  BlockSet& released = released_[(uint64_t{buffer} << 40) + offset];
  Merge(known_, released);
  if (!fenced_) return;
  Merge(released, known_);
  if (released.size() <= block_ / 64) released.resize(block_ / 64 + 1);
  released[block_ / 64] |= uint64_t{1} << block_ % 64;
}

GlobalRaces::Result GlobalRaces::Access(size_t buffer, uint64_t buffer_bytes,
                                        uint64_t offset, uint32_t bytes,
                                        AccessKind kind, Stamp stamp,
                                        const Clock& now) {
  // Only who releases makes an order, so blocks without fences pay nothing.
  if (IsStrong(kind) && (fenced_ || !released_.empty())) {
    Synchronise(buffer, offset);
  }
  std::vector<Page>& pages = pages_[buffer];
  if (pages.empty()) {
    pages.resize((buffer_bytes >> shift_) / kPageCells + 1);
  }
  const uint64_t last = (offset + bytes - 1) >> shift_;
  for (uint64_t i = offset >> shift_; i <= last; ++i) {
    Page& page = pages[i / kPageCells];
    if (page == nullptr) page = std::make_unique<Cell[]>(kPageCells);
    const Result result =
        Touch(page[i % kPageCells], IsWrite(kind), stamp, now);
    if (result.conflict) return result;
  }
  return {};
}

}  // namespace regatta::ptxsim
