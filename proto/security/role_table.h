// THE table of what each role may call. A method without a row is refused to
// everybody; a test asks that every method of every service has one.
//
// To let a new method be called: one row in role_table.cc, and the same in the
// table of docs/security.md, which a test compares.
#ifndef REGATTA_PROTO_SECURITY_ROLE_TABLE_H_
#define REGATTA_PROTO_SECURITY_ROLE_TABLE_H_

#include <string_view>

#include "absl/types/span.h"
#include "base/certs/identity.h"

namespace regatta {

struct MethodRule {
  std::string_view method;  // as in "SERVICE/METHOD", without the package
  RoleSet roles;
  // Privileged: every call of it, done or failed, stands in the audit.
  bool audited = false;
  // For newcomers on the enrolment port, who have no role yet.
  bool newcomers = false;
};

absl::Span<const MethodRule> MethodRules();

// "TuningService/SubmitJob" of "/regatta.v1.TuningService/SubmitJob"; what is
// of another package stays as it is.
std::string_view ShortMethod(std::string_view path);

// nullptr: nobody may call it.
const MethodRule* FindMethodRule(std::string_view short_method);

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_ROLE_TABLE_H_
