// Copies of the part of a tensor that an access touches while some of its
// indices vary: a padded image without guards, or a block of an operand with
// rows that do not collide in the cache.
#ifndef REGATTA_COMPILER_SPACE_RULES_BOX_COPY_H_
#define REGATTA_COMPILER_SPACE_RULES_BOX_COPY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/lower/loop_builder.h"

namespace regatta {

// An index whose values are kept `depth` together: [..][step][..][value], the
// last step filled up. It is the whole subscript of one dimension.
struct BoxGroup {
  int index = -1;
  int64_t depth = 1;
};

// Per dimension of the tensor. The box starts at `low` relative to the element
// where every varying index has its first value. The dimension of a group
// counts steps.
struct Box {
  std::vector<int64_t> low, extent, stride;
  int64_t elements = 1;
  BoxGroup group;
  size_t group_dim = 0;
  int64_t group_extent = 1;  // values, without what fills up the last step
};

// The box of `access` when each index in `varying` takes that many values. Rows
// are a few `lanes` apart from a multiple of the cache's period.
Box BoxOf(const Expr& access, const std::map<int, int64_t>& varying,
          int64_t lanes, BoxGroup group = {});

// Offset in a copy laid out by `box` of the element at `bind`, where `first`
// binds the varying indices to their first values and the others alike; of a
// group, the first value of a step.
Affine BoxOffset(const Expr& access, const Box& box,
                 const std::function<Affine(int)>& bind,
                 const std::function<Affine(int)>& first);

// Fills `buffer`, laid out by `box`, over the extents of `part`, which may be
// smaller than those of `box` (a tail). Padding is materialised, and zeros fill
// up the last step of a group; `add` is added to every element, which wraps.
// The outermost dimension's loop is of `kind`.
loop::StmtPtr CopyBox(LoopBuilder& out, const Expr& access, const Box& box,
                      const Box& part, int buffer,
                      const std::function<Affine(int)>& first, int64_t lanes,
                      loop::LoopKind kind, double add = 0);

// `form` over `divisor`, which divides every term.
Affine DivideExactly(const Affine& form, int64_t divisor);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_BOX_COPY_H_
