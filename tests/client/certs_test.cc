// `regatta certs` on an authority of this machine, as a person runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/certs/authority.h"
#include "base/certs/tls_folder.h"
#include "base/certs/tls_identity.h"
#include "base/clock.h"
#include "client/cli/documents.h"
#include "client/cli/issue_folder.h"
#include "tests/support/process.h"

namespace regatta::cli {
namespace {

using ::regatta::testing::ProcessResult;
using ::regatta::testing::ReadFile;
using ::regatta::testing::RunProcess;
using ::regatta::testing::TempDir;
using ::regatta::testing::WriteFile;
using ::testing::HasSubstr;

class Certs : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Authority::Init(authority_, "lab", RealClock().Wall()).ok());
  }
  ProcessResult Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {REGATTA_PROGRAM_DIR "/regatta", "certs"});
    arguments.insert(arguments.end(), {"--authority", authority_});
    return RunProcess(arguments, {}, absl::Seconds(30));
  }
  ProcessResult Issue(const std::string& dir,
                      std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"issue", "--role", "submitter", "--name", "ann",
                               "--out", dir});
    return Run(more);
  }
  // As made at this time.
  void IssueAt(absl::Time made, const std::string& dir,
               const std::string& name) const {
    auto authority = Authority::Open(authority_);
    ASSERT_TRUE(authority.ok());
    const absl::Status done = IssueFolder(authority->get(), dir,
                                          {.lab = "lab",
                                           .role = Role::kSubmitter,
                                           .name = name,
                                           .device_class = ""},
                                          made, kCertificateLife, "test");
    ASSERT_TRUE(done.ok()) << done.message();
  }

  TempDir temp_;
  const std::string authority_ = temp_.path() + "/authority";
  const std::string dir_ = temp_.path() + "/ann.tls";
};

TEST_F(Certs, OneThatIsForLaterIsNotGood) {
  const absl::Time now = RealClock().Wall();
  IssueAt(now, dir_, "ann");
  IssueAt(now + absl::Hours(48), temp_.path() + "/bob.tls", "bob");
  const absl::Time begins = now + absl::Hours(48) - kClockSlack;
  const ProcessResult listed = Run({"list"});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out,
              HasSubstr("not yet valid until " +
                        absl::FormatTime("%Y-%m-%d %H:%M UTC", begins,
                                         absl::UTCTimeZone())));
  EXPECT_EQ(listed.out.find("good"), listed.out.rfind("good"));
  EXPECT_LT(listed.out.find("submitter/ann"), listed.out.find("good"));
  const Json entries = Json::parse(Run({"list", "--json"}).out)["certificates"];
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1]["not_before_unix_s"], absl::ToUnixSeconds(begins));
  // A log of an older release, which does not say it: by when it was issued.
  std::string log = ReadFile(authority_ + "/authority.jsonl");
  for (size_t at; (at = log.find("\"not_before\"")) != log.npos;) {
    log.erase(at, log.find(',', at) + 1 - at);
  }
  WriteFile(authority_ + "/authority.jsonl", log);
  EXPECT_EQ(Json::parse(Run({"list", "--json"}).out)["certificates"], entries);
}

TEST_F(Certs, APairThatCountsIsReplacedOnlyWhenThatIsAsked) {
  ASSERT_EQ(Issue(dir_).exit_code, 0);
  const std::string key = ReadFile(dir_ + "/key.pem");
  const std::string chain = ReadFile(dir_ + "/cert.pem");
  const ProcessResult refused = Issue(dir_);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr(dir_));
  EXPECT_THAT(refused.err, HasSubstr("--force replaces them"));
  EXPECT_EQ(ReadFile(dir_ + "/key.pem"), key);
  EXPECT_EQ(ReadFile(dir_ + "/cert.pem"), chain);
  EXPECT_EQ(Json::parse(Run({"list", "--json"}).out)["certificates"].size(), 1u)
      << "what is refused issues nothing";

  // A daemon that has the folder open takes the new pair up.
  auto open = TlsIdentity::Open(dir_, {Role::kSubmitter}, RealClock());
  ASSERT_TRUE(open.ok()) << open.status().message();
  const ProcessResult replaced = Issue(dir_, {"--force"});
  ASSERT_EQ(replaced.exit_code, 0) << replaced.err;
  EXPECT_NE(ReadFile(dir_ + "/key.pem"), key);
  EXPECT_EQ(ReadFile(dir_ + "/key.pem.old"), key);
  EXPECT_EQ(ReadFile(dir_ + "/cert.pem.old"), chain);
  struct stat file = {};
  ASSERT_EQ(stat((dir_ + "/key.pem.old").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  ASSERT_TRUE((*open)->Reload().ok());
  EXPECT_EQ((*open)->material()->chain_pem, ReadFile(dir_ + "/cert.pem"));
}

TEST_F(Certs, AKeyAloneIsSomebodysToo) {
  ASSERT_EQ(Issue(dir_).exit_code, 0);
  ASSERT_EQ(unlink((dir_ + "/cert.pem").c_str()), 0);
  const std::string key = ReadFile(dir_ + "/key.pem");
  EXPECT_EQ(Issue(dir_).exit_code, 1);
  EXPECT_EQ(ReadFile(dir_ + "/key.pem"), key);
}

TEST_F(Certs, WhatIsSpentIsReplacedUnasked) {
  IssueAt(RealClock().Wall() - 2 * kCertificateLife, dir_, "ann");
  const std::string key = ReadFile(dir_ + "/key.pem");
  const ProcessResult issued = Issue(dir_);
  EXPECT_EQ(issued.exit_code, 0) << issued.err;
  EXPECT_EQ(ReadFile(dir_ + "/key.pem.old"), key);
  EXPECT_TRUE(ReadTlsFolder(dir_, RealClock().Wall()).ok());
}

}  // namespace
}  // namespace regatta::cli
