// Who somebody is in a lab: what a certificate says, as one URI in it,
//
//   regatta://LAB/ROLE/NAME            regatta://LAB/agent/NAME?class=CLASS
//
// Pure functions.
#ifndef REGATTA_BASE_CERTS_IDENTITY_H_
#define REGATTA_BASE_CERTS_IDENTITY_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace regatta {

// People, each of whom may do what the one before may, and machines.
enum class Role {
  kViewer,
  kSubmitter,
  kOperator,
  kAdmin,
  kAgent,
  kServer,
  kTracker,
};

// "viewer".
std::string_view RoleName(Role role);
// InvalidArgument listing the roles.
absl::StatusOr<Role> ParseRole(std::string_view text);

class RoleSet {
 public:
  constexpr RoleSet() = default;
  constexpr RoleSet(std::initializer_list<Role> roles) {
    for (const Role role : roles) bits_ |= Bit(role);
  }
  constexpr bool Has(Role role) const { return (bits_ & Bit(role)) != 0; }
  constexpr RoleSet operator|(RoleSet other) const {
    RoleSet all = *this;
    all.bits_ |= other.bits_;
    return all;
  }
  friend constexpr bool operator==(RoleSet, RoleSet) = default;

 private:
  static constexpr uint32_t Bit(Role role) {
    return uint32_t{1} << static_cast<int>(role);
  }
  uint32_t bits_ = 0;
};

// Every role, in the enum's order.
inline constexpr Role kAllRoles[] = {
    Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin,
    Role::kAgent,  Role::kServer,    Role::kTracker};

struct Identity {
  std::string lab;
  Role role = Role::kViewer;
  std::string name;
  // Of an agent: the only class that its devices may be of; "": any.
  std::string device_class;
  friend bool operator==(const Identity&, const Identity&) = default;
};

// InvalidArgument unless lab, name and class are names (base/name_check.h) and
// only an agent has a class.
absl::Status CheckIdentity(const Identity& identity);

std::string IdentityUri(const Identity& identity);
// The inverse. InvalidArgument quotes what is no such URI.
absl::StatusOr<Identity> ParseIdentityUri(std::string_view uri);

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_IDENTITY_H_
