// Finds races in the shared memory of a block, and accesses to destinations of
// copies that nobody has waited for.
//
// A cell for each `granule` bytes remembers the last write, the first read
// since the last ordered one and one more unordered read of another thread.
// Where all barriers are of the whole block that is exact: a race is reported
// if and only if two threads touch a cell, at least one writing and not both
// strong, with no barrier between. Two lanes that store to one place are a race
// even when they store the same value.
#ifndef REGATTA_COMPILER_PTXSIM_SHARED_RACES_H_
#define REGATTA_COMPILER_PTXSIM_SHARED_RACES_H_

#include <cstdint>
#include <vector>

#include "compiler/ptxsim/race_clocks.h"

namespace regatta::ptxsim {

// Strong accesses (atom, red, .relaxed, .acquire, .release) do not race with
// each other. A .volatile access is not among them: on hardware whose lanes
// advance on their own it orders nothing.
enum class AccessKind : uint8_t { kRead, kWrite, kStrongRead, kStrongWrite };

constexpr bool IsWrite(AccessKind kind) {
  return kind == AccessKind::kWrite || kind == AccessKind::kStrongWrite;
}
constexpr bool IsStrong(AccessKind kind) {
  return kind == AccessKind::kStrongRead || kind == AccessKind::kStrongWrite;
}

// The earlier access of a race; 0 for none.
struct Conflict {
  Stamp other = 0;
  bool other_wrote = false;
  explicit operator bool() const { return other != 0; }
};

class SharedRaces {
 public:
  // `granule`: 1, 2 or 4; every access is a multiple of it and aligned to it.
  SharedRaces(uint64_t bytes, uint32_t granule);

  // Forgets everything: a new block.
  void Reset();

  // REQUIRES: the access lies within the memory.
  Conflict Access(uint64_t address, uint32_t bytes, AccessKind kind,
                  Stamp stamp, const Clock& now);

  // A copy that will land later: an unordered access before the landing, by its
  // own thread too, is a conflict with it.
  Conflict StartCopy(uint64_t address, uint32_t bytes, Stamp stamp,
                     const Clock& now);
  void LandCopy(uint64_t address, uint32_t bytes, Stamp stamp);

 private:
  struct Cell {
    Stamp write = 0;
    Stamp first_read = 0;
    Stamp other_read = 0;
  };

  static Conflict Touch(Cell& cell, bool write, Stamp stamp, const Clock& now);

  int shift_;
  std::vector<Cell> cells_;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_SHARED_RACES_H_
