// Early returns for absl::Status and absl::StatusOr.
//
//   RETURN_IF_ERROR(log->Append(record));
//   ASSIGN_OR_RETURN(Workload workload, ParseWorkload(text));
//
// Shaped like the macros of newer abseil releases, which Debian 12 lacks.
#ifndef REGATTA_BASE_STATUS_MACROS_H_
#define REGATTA_BASE_STATUS_MACROS_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace regatta {

// The same code with `context + ": "` before the message: what was being
// worked on when the error came up. OK stays OK.
inline absl::Status Annotate(const absl::Status& status,
                             std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(std::string(context), ": ",
                                   status.message()));
}

}  // namespace regatta

#define RETURN_IF_ERROR(expr)                              \
  do {                                                     \
    if (absl::Status regatta_status = (expr); !regatta_status.ok()) { \
      return regatta_status;                               \
    }                                                      \
  } while (false)

#define REGATTA_CONCAT_INNER_(a, b) a##b
#define REGATTA_CONCAT_(a, b) REGATTA_CONCAT_INNER_(a, b)
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL_(REGATTA_CONCAT_(regatta_statusor_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL_(var, lhs, expr) \
  auto var = (expr);                           \
  if (!var.ok()) return var.status();          \
  lhs = *std::move(var)

#endif  // REGATTA_BASE_STATUS_MACROS_H_
