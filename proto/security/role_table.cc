#include "proto/security/role_table.h"

#include <algorithm>

namespace regatta {
namespace {

constexpr RoleSet kAdmins = {Role::kAdmin};
constexpr RoleSet kOperators = kAdmins | RoleSet{Role::kOperator};
constexpr RoleSet kSubmitters = kOperators | RoleSet{Role::kSubmitter};
constexpr RoleSet kViewers = kSubmitters | RoleSet{Role::kViewer};
constexpr RoleSet kAgents = {Role::kAgent};
constexpr RoleSet kServers = {Role::kServer};
constexpr RoleSet kEverybody =
    kViewers | kAgents | kServers | RoleSet{Role::kTracker};

constexpr MethodRule kRules[] = {
    {"AuditService/ListAudit", kOperators | kServers},
    {"CertificateService/GetRevocations", kEverybody},
    {"CertificateService/Renew", kEverybody, /*audited=*/true},
    {"DispatchService/ControlDevices", kServers, /*audited=*/true},
    {"DispatchService/DeviceHistory", kViewers | kServers},
    {"DispatchService/Dispatch", kServers},
    {"DispatchService/ListDevices", kViewers | kServers},
    {"EnrolmentService/Join", {}, /*audited=*/true, /*newcomers=*/true},
    {"FleetService/Session", kAgents},
    {"LogService/Backup", kOperators, /*audited=*/true},
    {"LogService/Check", kOperators, /*audited=*/true},
    {"LogService/Export", kViewers},
    {"LogService/Import", kOperators, /*audited=*/true},
    {"LogService/Rebuild", kOperators, /*audited=*/true},
    {"LogService/Snapshot", kViewers},
    {"TuningService/Best", kViewers},
    {"TuningService/CancelJob", kSubmitters, /*audited=*/true},
    {"TuningService/ControlDevices", kOperators, /*audited=*/true},
    {"TuningService/DeviceHistory", kViewers},
    {"TuningService/GetJob", kViewers},
    {"TuningService/ListDevices", kViewers},
    {"TuningService/ListJobs", kViewers},
    {"TuningService/ListRecords", kViewers},
    {"TuningService/ResumeJob", kSubmitters, /*audited=*/true},
    {"TuningService/SubmitJob", kSubmitters, /*audited=*/true},
    {"TuningService/WatchJob", kViewers},
};

constexpr std::string_view kPackage = "/regatta.v1.";

}  // namespace

absl::Span<const MethodRule> MethodRules() { return kRules; }

std::string_view ShortMethod(std::string_view path) {
  return path.starts_with(kPackage) ? path.substr(kPackage.size()) : path;
}

const MethodRule* FindMethodRule(std::string_view short_method) {
  const auto* found = std::find_if(
      std::begin(kRules), std::end(kRules),
      [&](const MethodRule& rule) { return rule.method == short_method; });
  return found == std::end(kRules) ? nullptr : found;
}

}  // namespace regatta
