#include "base/certs/identity.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/name_check.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace regatta {
namespace {

constexpr std::string_view kScheme = "regatta://";
constexpr std::string_view kClass = "?class=";

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kViewer:
      return "viewer";
    case Role::kSubmitter:
      return "submitter";
    case Role::kOperator:
      return "operator";
    case Role::kAdmin:
      return "admin";
    case Role::kAgent:
      return "agent";
    case Role::kServer:
      return "server";
    case Role::kTracker:
      return "tracker";
  }
  return "";
}

absl::StatusOr<Role> ParseRole(std::string_view text) {
  std::string names;
  for (const Role role : kAllRoles) {
    if (RoleName(role) == text) return role;
    absl::StrAppend(&names, names.empty() ? "" : ", ", ToAbsl(RoleName(role)));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", ToAbsl(text.substr(0, 100)), "' is no role; there are: ", names));
}

absl::Status CheckIdentity(const Identity& identity) {
  RETURN_IF_ERROR(CheckName("lab", identity.lab));
  RETURN_IF_ERROR(CheckName("name", identity.name));
  if (identity.device_class.empty()) return absl::OkStatus();
  if (identity.role != Role::kAgent) {
    return absl::InvalidArgumentError(
        absl::StrCat("class: only agents have one, not a ",
                     ToAbsl(RoleName(identity.role))));
  }
  return CheckName("class", identity.device_class);
}

std::string IdentityUri(const Identity& identity) {
  std::string uri =
      absl::StrCat(ToAbsl(kScheme), identity.lab, "/",
                   ToAbsl(RoleName(identity.role)), "/", identity.name);
  if (!identity.device_class.empty()) {
    absl::StrAppend(&uri, ToAbsl(kClass), identity.device_class);
  }
  return uri;
}

absl::StatusOr<Identity> ParseIdentityUri(std::string_view uri) {
  const auto bad = [uri] {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", ToAbsl(uri.substr(0, 200)), "' is no regatta://LAB/ROLE/NAME"));
  };
  if (!uri.starts_with(kScheme)) return bad();
  std::string_view rest = uri.substr(kScheme.size());
  Identity identity;
  if (const size_t at = rest.find(kClass); at != rest.npos) {
    identity.device_class = rest.substr(at + kClass.size());
    if (identity.device_class.empty()) return bad();
    rest = rest.substr(0, at);
  }
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(rest), '/');
  if (parts.size() != 3) return bad();
  identity.lab = parts[0];
  identity.name = parts[2];
  const auto role = ParseRole(parts[1]);
  if (!role.ok()) return bad();
  identity.role = *role;
  if (!CheckIdentity(identity).ok()) return bad();
  return identity;
}

}  // namespace regatta
