// What a workload is to the tuning log.
#ifndef REGATTA_SERVER_QUERY_WORKLOAD_INFO_H_
#define REGATTA_SERVER_QUERY_WORKLOAD_INFO_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/expr/expr.h"
#include "storage/tuning_log.h"

namespace regatta {

// `structure` is the canonical expression with what follows from extents replaced
// by '#': the numbers of its bindings (extents and tensor shapes), and fractions,
// such as a mean's 1/columns. Whole numbers inside the expression, such as
// strides, stay, since another stride is another computation.
WorkloadInfo DescribeWorkload(const Workload& workload);

// Of a workload's text; InvalidArgument when it cannot be read.
absl::StatusOr<WorkloadInfo> DescribeWorkloadText(const std::string& text);

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_WORKLOAD_INFO_H_
