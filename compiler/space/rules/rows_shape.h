// Which consecutive stages can run row by row.
#ifndef REGATTA_COMPILER_SPACE_RULES_ROWS_SHAPE_H_
#define REGATTA_COMPILER_SPACE_RULES_ROWS_SHAPE_H_

#include <vector>

#include "compiler/expr/expr.h"

namespace regatta {

// Stages [first, first + count) all have `row_dims` leading output dimensions
// of the same extents, and read what the others computed at their own row only:
// a row passes through all stages before the next one starts.
struct RowsShape {
  int first = -1;
  int count = 0;
  int row_dims = 0;
  // Per stage of the run: nothing outside the run reads the result, so that it
  // needs no more room than the rows in flight.
  std::vector<bool> local;
  // Per stage of the run: local, not reduced, more than one number a row, and
  // read later in the run, so that readers can compute it again.
  std::vector<bool> recomputable;
};

// The longest run of at least two stages; count 0 when there is none. Runs stop
// before contractions, which have better loops of their own.
RowsShape MatchRows(const Workload& workload, int first_stage);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_ROWS_SHAPE_H_
