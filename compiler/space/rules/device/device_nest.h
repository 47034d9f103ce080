// What the rules for devices that run groups of threads write their kernels
// with: the loops around a kernel, and tiles of indices with guarded tails.
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_DEVICE_NEST_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_DEVICE_NEST_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/lower/loop_builder.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/target/target.h"

namespace regatta {

// An index of a stage cut into `trips` pieces that different groups work on.
struct GridAxis {
  int index;
  int64_t trips;
};

// The axes that an output's indices make. Those that `tiled` names have that
// many pieces, all others one for each value.
std::vector<GridAxis> GridAxes(const Workload& workload, const Stage& stage,
                               const std::map<int, int64_t>& tiled);

// A kernel over a grid of groups of threads[0] x threads[1] threads. The three
// axes with most trips are its dimensions; any others are loops inside each
// thread. `body` writes the program of one thread from the piece of each
// index that its group works on, and the thread's place in the group.
loop::StmtPtr OverGrid(
    LoopBuilder& out, std::vector<GridAxis> axes,
    const std::array<int64_t, 2>& threads,
    const std::function<loop::StmtPtr(const std::map<int, Affine>& piece,
                                      const std::array<Affine, 2>& thread)>&
        body);

// Piece number `piece` of [0, extent) in pieces of `size`, the last of which
// may be shorter; nothing where there is no such piece. `body` writes one piece
// from its start and its constant extent, once for the whole pieces and once
// for the short one.
loop::StmtPtr ForPiece(
    const Affine& piece, int64_t extent, int64_t size,
    const std::function<loop::StmtPtr(const Affine& start, int64_t extent)>&
        body);

// `value`, a load, that reads only where `guards` hold as well.
loop::ValuePtr WithGuards(const loop::ValuePtr& value,
                          const std::vector<loop::Guard>& guards);

// Work-items that a group may have: the target's limit, or 256, which every
// device known offers.
int64_t MaxGroup(const Target& target);

// Why a group of `threads` work-items does not fit; absent when it does.
std::optional<std::string> GroupViolation(const Target& target,
                                          int64_t threads);
// Why `bytes` of memory shared by a group do not fit; absent when they do.
std::optional<std::string> LocalViolation(const Target& target, int64_t bytes);
// Why `values` numbers that each work-item keeps in registers do not fit;
// absent when they do.
std::optional<std::string> RegisterViolation(const Target& target,
                                             int64_t values);

// Why an image of width x height pixels does not fit; absent when it does.
std::optional<std::string> ImageViolation(const Target& target, int64_t width,
                                          int64_t height);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_DEVICE_NEST_H_
