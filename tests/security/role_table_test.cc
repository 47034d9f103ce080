// The role table against the services' descriptors and against
// docs/security.md.
#include "proto/security/role_table.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "regatta/v1/dispatch_service.pb.h"
#include "regatta/v1/fleet_service.pb.h"
#include "regatta/v1/log_service.pb.h"
#include "regatta/v1/security_service.pb.h"
#include "regatta/v1/tuning_service.pb.h"
#include "tests/security/test_lab.h"

namespace regatta::testing {
namespace {

const std::string kSource = REGATTA_SOURCE_DIR;

// Every method of every service in proto/, as "SERVICE/METHOD".
std::set<std::string> AllMethods() {
  // Their files are registered by use.
  (void)v1::JoinRequest::descriptor();
  (void)v1::SubmitJobRequest::descriptor();
  (void)v1::CheckLogRequest::descriptor();
  std::set<std::string> methods;
  for (const auto& file :
       std::filesystem::directory_iterator(kSource + "/proto/regatta/v1")) {
    const std::string name = "regatta/v1/" + file.path().filename().string();
    const auto* described =
        google::protobuf::DescriptorPool::generated_pool()->FindFileByName(
            name);
    if (described == nullptr) {
      // Not linked here, so it must have messages only.
      EXPECT_EQ(ReadFile(file.path()).find("\nservice "), std::string::npos)
          << name;
      continue;
    }
    for (int s = 0; s < described->service_count(); ++s) {
      const auto* service = described->service(s);
      for (int m = 0; m < service->method_count(); ++m) {
        methods.insert(
            absl::StrCat(service->name(), "/", service->method(m)->name()));
      }
    }
  }
  return methods;
}

// The rows of the table in docs/security.md: method to the roles in it.
std::map<std::string, std::set<std::string>> DocumentedTable() {
  std::map<std::string, std::set<std::string>> rows;
  std::istringstream page(ReadFile(kSource + "/docs/security.md"));
  std::vector<std::string> roles;
  for (std::string line; std::getline(page, line);) {
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    if (cells.size() < 4) continue;
    if (cells[1] == "method") {
      roles.assign(cells.begin() + 2, cells.end() - 1);
      continue;
    }
    const std::string method =
        cells[1].size() > 2 ? cells[1].substr(1, cells[1].size() - 2) : "";
    if (roles.empty() || method.find('/') == method.npos) continue;
    std::set<std::string>& row = rows[method];
    for (size_t i = 0; i < roles.size() && i + 2 < cells.size(); ++i) {
      if (!cells[i + 2].empty()) row.insert(roles[i]);
    }
  }
  return rows;
}

TEST(RoleTableTest, EveryMethodOfEveryServiceHasARowAndNoRowIsLeftOver) {
  std::set<std::string> ruled;
  for (const MethodRule& rule : MethodRules()) {
    EXPECT_TRUE(ruled.insert(std::string(rule.method)).second)
        << rule.method << " has two rows";
  }
  const std::set<std::string> methods = AllMethods();
  EXPECT_GE(methods.size(), 20u);
  EXPECT_EQ(ruled, methods);
}

TEST(RoleTableTest, TheDocumentSaysTheSame) {
  const auto documented = DocumentedTable();
  EXPECT_EQ(documented.size(), MethodRules().size());
  for (const MethodRule& rule : MethodRules()) {
    const auto row = documented.find(std::string(rule.method));
    ASSERT_NE(row, documented.end()) << rule.method;
    std::set<std::string> roles;
    for (const Role role : kAllRoles) {
      if (rule.roles.Has(role)) roles.insert(std::string(RoleName(role)));
    }
    if (rule.newcomers) roles.insert("newcomer");
    if (rule.audited) roles.insert("audited");
    EXPECT_EQ(row->second, roles) << rule.method;
  }
}

TEST(RoleTableTest, PeopleMayWhatTheRolesBelowMay) {
  const Role people[] = {Role::kViewer, Role::kSubmitter, Role::kOperator,
                         Role::kAdmin};
  for (const MethodRule& rule : MethodRules()) {
    for (int i = 1; i < 4; ++i) {
      if (rule.roles.Has(people[i - 1])) {
        EXPECT_TRUE(rule.roles.Has(people[i])) << rule.method;
      }
    }
  }
}

TEST(RoleTableTest, WhatHasNoRowIsNobodys) {
  EXPECT_EQ(FindMethodRule("TuningService/DropEverything"), nullptr);
  EXPECT_EQ(FindMethodRule(""), nullptr);
  EXPECT_EQ(ShortMethod("/regatta.v1.LogService/Check"), "LogService/Check");
  EXPECT_EQ(ShortMethod("/grpc.reflection.v1/X"), "/grpc.reflection.v1/X");
  EXPECT_EQ(FindMethodRule(ShortMethod("/evil.LogService/Check")), nullptr);
}

// Every role against every method over a real connection, by what the document
// says. The tracker serves only some of the services; for the others the answer
// to whoever may call them is that they are not there.
TEST(RoleTableTest, EveryRoleIsHeldToTheTableForEveryMethod) {
  TestLab lab;
  LabTracker tracker(&lab);
  const auto documented = DocumentedTable();
  for (const Role role : kAllRoles) {
    const auto channel =
        Dial(tracker.address(), lab.Open(role, std::string(RoleName(role))));
    for (const std::string& method : AllMethods()) {
      // These wait for a first message, which an empty one is not: it is
      // answered all the same.
      const grpc::Status status = CallEmpty(channel, method);
      const bool allowed =
          documented.at(method).contains(std::string(RoleName(role)));
      EXPECT_EQ(status.error_code() == grpc::StatusCode::PERMISSION_DENIED,
                !allowed)
          << RoleName(role) << " calls " << method << ": "
          << status.error_code() << " " << status.error_message();
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    }
  }
  EXPECT_TRUE(tracker.Audited(
      {"regatta://lab/viewer/viewer", "TuningService/SubmitJob", "refused"}))
      << tracker.AuditText();
}

}  // namespace
}  // namespace regatta::testing
