// The operators and shapes of the table that operator_bench prints: every
// operator, f32, 1 ms or more on one core.
#ifndef REGATTA_TESTS_BENCH_OPERATOR_ROWS_H_
#define REGATTA_TESTS_BENCH_OPERATOR_ROWS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace regatta::bench {

struct OperatorRow {
  enum class Bound {
    kCompute,  // held to a share of the peak of multiply-adds
    kMemory,   // held to a share of the bandwidth
  };
  const char* name;      // of the operator and the variant
  const char* workload;  // text
  Bound bound;
  // kCompute: arithmetic of one call, two per multiply-add. kMemory: 0.
  double flops = 0;
  // Which part of the first input must be read, where that is not all inputs:
  // `rows` stretches of `row_bytes`, `row_step` bytes apart, the first after
  // `skip` bytes. 0 rows: everything.
  int64_t rows = 0, row_bytes = 0, row_step = 0, skip = 0;
};

absl::Span<const OperatorRow> OperatorRows();

}  // namespace regatta::bench

#endif  // REGATTA_TESTS_BENCH_OPERATOR_ROWS_H_
