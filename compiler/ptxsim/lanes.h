// Reading and writing the registers of a warp's lanes, and the templates that
// turn an operation on numbers into a handler for a warp.
#ifndef REGATTA_COMPILER_PTXSIM_LANES_H_
#define REGATTA_COMPILER_PTXSIM_LANES_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "compiler/ptxsim/program.h"
#include "compiler/ptxsim/warp_context.h"

namespace regatta::ptxsim {

// How a T lies in the frame: see program.h.
template <typename T>
using CellOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T>
inline T FromCell(CellOf<T> cell) {
  if constexpr (sizeof(T) == sizeof(cell)) {
    return std::bit_cast<T>(cell);
  } else {
    return static_cast<T>(cell);
  }
}

template <typename T>
inline CellOf<T> ToCell(T value) {
  if constexpr (sizeof(T) == sizeof(CellOf<T>)) {
    return std::bit_cast<CellOf<T>>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

inline const uint32_t* Cells32(const WarpContext& warp, Slot slot) {
  return reinterpret_cast<const uint32_t*>(warp.frame + slot);
}
inline uint32_t* Cells32(WarpContext& warp, Slot slot) {
  return reinterpret_cast<uint32_t*>(warp.frame + slot);
}
inline uint64_t* Cells64(WarpContext& warp, Slot slot) {
  return reinterpret_cast<uint64_t*>(warp.frame + slot);
}
template <typename T>
inline CellOf<T>* Cells(WarpContext& warp, Slot slot) {
  return reinterpret_cast<CellOf<T>*>(warp.frame + slot);
}
inline uint32_t& Predicate(WarpContext& warp, Slot slot) {
  return *reinterpret_cast<uint32_t*>(warp.frame + slot);
}

// Sets the cells of the executing lanes.
template <typename Cell>
inline void Commit(WarpContext& warp, Slot slot, const Cell (&values)[kLanes]) {
  Cell* to = reinterpret_cast<Cell*>(warp.frame + slot);
  if (warp.mask == ~0u) {
    std::memcpy(to, values, sizeof(values));
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((warp.mask >> lane) & 1) to[lane] = values[lane];
  }
}

inline void CommitPredicate(WarpContext& warp, Slot slot, uint32_t values) {
  uint32_t& to = Predicate(warp, slot);
  to = (to & ~warp.mask) | (values & warp.mask);
}

// operand[0] = Op(instruction)(operand[1], ...) for each lane. All lanes are
// computed, so Op must be defined for every input.
template <typename Op, typename D, typename... S>
void MapLanes(const Instruction& in, WarpContext& warp) {
  const Op op(in);
  alignas(64) CellOf<D> out[kLanes];
  [&]<size_t... I>(std::index_sequence<I...>) {
    const auto run = [&](const CellOf<S>* __restrict... source) {
      for (int lane = 0; lane < kLanes; ++lane) {
        out[lane] = ToCell<D>(op(FromCell<S>(source[lane])...));
      }
    };
    run(Cells<S>(warp, in.operand[1 + I])...);
  }
  (std::index_sequence_for<S...>{});
  Commit(warp, in.operand[0], out);
}

// An Op whose instruction has no variants.
struct PlainOp {
  PlainOp() = default;
  explicit PlainOp(const Instruction&) {}
};

// The number of lanes in a mask, and the loop over them.
template <typename F>
inline void ForEachLane(uint32_t mask, F&& f) {
  while (mask != 0) {
    f(std::countr_zero(mask));
    mask &= mask - 1;
  }
}

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_LANES_H_
