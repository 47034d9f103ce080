// The authority in its folder: tokens count once and in time, revocations stay,
// several processes agree, and a crash loses nothing that was answered.
#include "base/certs/authority.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/certs/revocation_list.h"
#include "tests/security/test_lab.h"

namespace regatta::testing {
namespace {

class AuthorityTest : public ::testing::Test {
 protected:
  absl::StatusOr<Authority::Issued> Join(const JoinToken& token,
                                         const std::string& name,
                                         absl::Duration later = {}) {
    return lab_.authority().Join(token.secret, name,
                                 PublicKey::Of(PrivateKey::Generate()),
                                 now_ + later);
  }
  JoinToken Token(const Authority::Scope& scope) {
    return *lab_.authority().MakeToken(scope, now_, kTokenLife, "test");
  }
  static std::string Why(const absl::StatusOr<Authority::Issued>& refused) {
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kPermissionDenied)
        << refused.status().message();
    return std::string(refused.status().message());
  }

  TestLab lab_;
  const absl::Time now_ = RealClock().Wall();
};

TEST_F(AuthorityTest, ATokenLetsItsNameInOnce) {
  const JoinToken token = Token(
      {.role = Role::kAgent, .name = "board1", .device_class = "znver4-2c"});
  const auto joined = Join(token, "");
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_EQ(IdentityUri(*joined->certificate.GetIdentity()),
            "regatta://lab/agent/board1?class=znver4-2c");
  EXPECT_NE(Why(Join(token, "")).find("has been used"), std::string::npos);
}

TEST_F(AuthorityTest, ATokenIsGoodForFifteenMinutes) {
  const JoinToken in_time = Token({.role = Role::kAgent, .name = "a"});
  EXPECT_TRUE(Join(in_time, "a", absl::Minutes(14.9)).ok());
  const JoinToken late = Token({.role = Role::kAgent, .name = "b"});
  EXPECT_NE(Why(Join(late, "b", absl::Minutes(15) + absl::Seconds(2)))
                .find("was valid until"),
            std::string::npos);
}

TEST_F(AuthorityTest, ATokenIsForOneNameOrForAFreeOne) {
  const JoinToken named = Token({.role = Role::kAgent, .name = "board1"});
  EXPECT_NE(Why(Join(named, "board2")).find("is for board1"),
            std::string::npos);
  const JoinToken any = Token({.role = Role::kAgent});
  EXPECT_EQ(Join(any, "").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Join(named, "board1").ok());
  EXPECT_NE(Why(Join(any, "board1")).find("somebody's name"),
            std::string::npos);
  EXPECT_TRUE(Join(any, "board2").ok());
}

TEST_F(AuthorityTest, AnUnknownSecretLetsNobodyIn) {
  EXPECT_NE(Why(Join(JoinToken::Make("x"), "a")).find("not known"),
            std::string::npos);
}

TEST_F(AuthorityTest, SecretsAreNotInTheFolder) {
  const JoinToken token = Token({.role = Role::kAgent, .name = "a"});
  const std::string log = ReadFile(lab_.authority_dir() + "/authority.jsonl");
  EXPECT_EQ(log.find(token.secret), log.npos);
  EXPECT_NE(log.find(token.Id()), log.npos);
}

TEST_F(AuthorityTest, ANewProcessKnowsWhatTheOldOneDid) {
  const JoinToken used = Token({.role = Role::kAgent, .name = "a"});
  const JoinToken open = Token({.role = Role::kAgent, .name = "b"});
  ASSERT_TRUE(Join(used, "a").ok());
  auto other = Authority::Open(lab_.authority_dir());
  ASSERT_TRUE(other.ok());
  const auto key = PublicKey::Of(PrivateKey::Generate());
  EXPECT_FALSE((*other)->Join(used.secret, "a", key, now_).ok());
  EXPECT_TRUE((*other)->Join(open.secret, "b", key, now_).ok());
  // And the one that was open all the time knows what the other did.
  EXPECT_NE(Why(Join(open, "b")).find("has been used"), std::string::npos);
}

TEST_F(AuthorityTest, RevokingANameRevokesAllItHas) {
  const Identity agent{
      .lab = "lab", .role = Role::kAgent, .name = "a", .device_class = ""};
  const auto key = PublicKey::Of(PrivateKey::Generate());
  std::vector<Certificate> issued;
  for (int i = 0; i < 3; ++i) {
    issued.push_back(lab_.authority()
                         .Issue(agent, key, now_, kCertificateLife, "t")
                         ->certificate);
  }
  const auto other = lab_.authority()
                         .Issue({.lab = "lab",
                                 .role = Role::kAgent,
                                 .name = "ab",
                                 .device_class = ""},
                                key, now_, kCertificateLife, "t")
                         ->certificate;
  EXPECT_EQ(*lab_.authority().Revoke("agent/a", "lost", now_, "t"), 3);
  EXPECT_EQ(lab_.authority().Revoke("agent/a", "", now_, "t").status().code(),
            absl::StatusCode::kNotFound);
  const auto list = RevocationList::FromPem(*lab_.authority().Revocations());
  ASSERT_TRUE(list.ok());
  for (const Certificate& certificate : issued) {
    EXPECT_TRUE(list->Revokes(certificate));
  }
  EXPECT_FALSE(list->Revokes(other));
  EXPECT_EQ(list->Number(), 2);
  EXPECT_EQ(lab_.authority()
                .Renew(agent, issued[0].Serial(), key, now_)
                .status()
                .code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(lab_.authority()
                  .Renew(*other.GetIdentity(), other.Serial(), key, now_)
                  .ok());
}

TEST_F(AuthorityTest, ALineThatACrashCutShortIsMended) {
  const JoinToken token = Token({.role = Role::kAgent, .name = "a"});
  const std::string path = lab_.authority_dir() + "/authority.jsonl";
  const std::string whole = ReadFile(path);
  // Of the next change, any number of bytes may have been written.
  for (size_t cut : {size_t{1}, whole.size() / 2, whole.size() - 1}) {
    WriteFile(path, whole + whole.substr(0, cut));
    auto opened = Authority::Open(lab_.authority_dir());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ(ReadFile(path), whole);
  }
  WriteFile(path, "{}\n");
  EXPECT_EQ(Authority::Open(lab_.authority_dir()).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(AuthorityTest, ThereIsOneInAFolder) {
  EXPECT_EQ(Authority::Init(lab_.authority_dir(), "lab", now_).code(),
            absl::StatusCode::kAlreadyExists);
  TempDir empty;
  EXPECT_NE(Authority::Open(empty.path())
                .status()
                .message()
                .find("regatta certs init"),
            std::string::npos);
  EXPECT_EQ(Authority::Init(empty.path() + "/x", "a b", now_).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(JoinTokenTest, ReadsBackAndNothingElseDoes) {
  const JoinToken token = JoinToken::Make(std::string(64, 'f'));
  EXPECT_EQ(token.secret.size(), 32u);
  EXPECT_NE(token.secret, JoinToken::Make("").secret);
  const auto read = JoinToken::Parse(token.Text());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->secret, token.secret);
  EXPECT_EQ(read->ca_fingerprint, token.ca_fingerprint);
  for (const std::string& bad :
       {std::string(), token.secret, token.Text() + "0", token.Text().substr(1),
        "rgt2" + token.Text().substr(4)}) {
    const auto refused = JoinToken::Parse(bad);
    EXPECT_FALSE(refused.ok()) << bad;
    // It may be nearly a secret.
    EXPECT_EQ(refused.status().message().find(token.secret), std::string::npos);
  }
}

}  // namespace
}  // namespace regatta::testing
