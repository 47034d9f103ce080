// The authority in its folder: tokens count once and in time, revocations stay,
// several processes agree, and a crash loses nothing that was answered.
#include "base/certs/authority.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
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
  const auto list =
      RevocationList::FromPem(*lab_.authority().Revocations(now_));
  ASSERT_TRUE(list.ok());
  for (const Certificate& certificate : issued) {
    EXPECT_TRUE(list->Revokes(certificate));
  }
  EXPECT_FALSE(list->Revokes(other));
  // The empty one, and three revocations.
  EXPECT_EQ(list->Number(), 4);
  const absl::Time later = now_ + kCertificateLife / 2;
  EXPECT_EQ(lab_.authority().Renew(issued[0], key, later).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(lab_.authority().Renew(other, key, later).ok());
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

class RevocationTest : public AuthorityTest {
 protected:
  Certificate Issued(const std::string& name,
                     absl::Duration life = kCertificateLife) {
    return lab_.authority()
        .Issue({.lab = "lab",
                .role = Role::kAgent,
                .name = name,
                .device_class = ""},
               key_, now_, life, "t")
        ->certificate;
  }
  RevocationList ListIn(Authority& authority) {
    return *RevocationList::FromPem(*authority.Revocations(now_));
  }
  const std::string list_ = lab_.authority_dir() + "/crl.pem";
  const PublicKey key_ = PublicKey::Of(PrivateKey::Generate());
};

TEST_F(RevocationTest, AListThatCouldNotBeWrittenIsWrittenByTheNextTry) {
  const Certificate bad = Issued("a");
  // Where the list is written first there is a folder that cannot be removed.
  const std::string beside = absl::StrCat(list_, ".", getpid(), ".tmp");
  std::filesystem::create_directories(beside + "/in-the-way");
  EXPECT_FALSE(lab_.authority().Revoke("agent/a", "", now_, "t").ok());
  EXPECT_FALSE(RevocationList::FromPem(ReadFile(list_))->Revokes(bad));
  std::filesystem::remove_all(beside);
  // It is revoked already, and now on the list.
  EXPECT_EQ(lab_.authority().Revoke("agent/a", "", now_, "t").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE(ListIn(lab_.authority()).Revokes(bad));
}

TEST_F(RevocationTest, AProcessThatDiedBeforeTheListIsMendedByTheNextOne) {
  const std::string before = ReadFile(list_);
  const Certificate bad = Issued("a");
  ASSERT_TRUE(lab_.authority().Revoke("agent/a", "", now_, "t").ok());
  WriteFile(list_, before);
  // By a process that was there, though it only hands out the list,
  EXPECT_TRUE(ListIn(lab_.authority()).Revokes(bad));
  // and by one that begins.
  WriteFile(list_, before);
  const auto next = Authority::Open(lab_.authority_dir());
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_TRUE(RevocationList::FromPem(ReadFile(list_))->Revokes(bad));
}

TEST_F(RevocationTest, ALostListComesBackWithANumberThatPeersTake) {
  for (const char* name : {"a", "b", "c"}) {
    Issued(name);
    ASSERT_TRUE(lab_.authority()
                    .Revoke(std::string("agent/") + name, "", now_, "t")
                    .ok());
  }
  EXPECT_EQ(ListIn(lab_.authority()).Number(), 4);
  WriteFile(list_, "garbage");
  const Certificate bad = Issued("d");
  ASSERT_TRUE(lab_.authority().Revoke("agent/d", "", now_, "t").ok());
  const RevocationList list = ListIn(lab_.authority());
  EXPECT_TRUE(list.Revokes(bad));
  EXPECT_EQ(list.Number(), 5);
}

TEST_F(RevocationTest, ASerialTakesAlongWhatWasRenewedFromIt) {
  const Certificate first = Issued("a"), apart = Issued("a");
  const auto second =
      lab_.authority().Renew(first, key_, now_ + absl::Hours(24 * 4));
  ASSERT_TRUE(second.ok()) << second.status().message();
  const auto third = lab_.authority().Renew(second->certificate, key_,
                                            now_ + absl::Hours(24 * 8));
  ASSERT_TRUE(third.ok()) << third.status().message();
  EXPECT_EQ(*lab_.authority().Revoke(first.Serial(), "stolen", now_, "t"), 3);
  const RevocationList list = ListIn(lab_.authority());
  EXPECT_TRUE(list.Revokes(second->certificate));
  EXPECT_TRUE(list.Revokes(third->certificate));
  EXPECT_FALSE(list.Revokes(apart));
  EXPECT_EQ(lab_.authority()
                .Renew(third->certificate, key_, now_ + absl::Hours(24 * 12))
                .status()
                .code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(RevocationTest, RenewalKeepsTheLifeAndWaitsForItsHalf) {
  const Certificate day = Issued("a", absl::Hours(24));
  const auto early =
      lab_.authority().Renew(day, key_, now_ + absl::Hours(11)).status();
  EXPECT_EQ(early.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(early.message().find("may be renewed from"), early.message().npos)
      << early.message();
  const absl::Time half = now_ + absl::Hours(12);
  const auto renewed = lab_.authority().Renew(day, key_, half);
  ASSERT_TRUE(renewed.ok()) << renewed.status().message();
  EXPECT_LE(absl::AbsDuration(renewed->certificate.NotAfter() -
                              (half + absl::Hours(24))),
            absl::Seconds(1));
  // The same one again, as a thief would.
  EXPECT_EQ(lab_.authority()
                .Renew(day, key_, half + absl::Seconds(30))
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(lab_.authority().Renew(day, key_, half + absl::Seconds(61)).ok());
}

TEST_F(AuthorityTest, ANameThatWasSomebodysIsNotFreeForTheAsking) {
  ASSERT_TRUE(Join(Token({.role = Role::kAgent, .name = "gone"}), "gone").ok());
  ASSERT_TRUE(lab_.authority().Revoke("agent/gone", "", now_, "t").ok());
  const absl::Duration later = kCertificateLife * 2;
  const auto late = [&](const Authority::Scope& scope) {
    return *lab_.authority().MakeToken(scope, now_ + later, kTokenLife, "test");
  };
  EXPECT_NE(Why(Join(late({.role = Role::kAgent}), "gone", later))
                .find("was somebody's name"),
            std::string::npos);
  // Whoever made a token for it meant it.
  EXPECT_TRUE(
      Join(late({.role = Role::kAgent, .name = "gone"}), "gone", later).ok());
}

TEST_F(AuthorityTest, NoAgentMayServeAnothersDevices) {
  ASSERT_TRUE(Join(Token({.role = Role::kAgent}), "pi-1").ok());
  const auto key = PublicKey::Of(PrivateKey::Generate());
  const auto issue = [&](Role role, const std::string& name) {
    return lab_.authority()
        .Issue({.lab = "lab", .role = role, .name = name, .device_class = ""},
               key, now_, kCertificateLife, "t")
        .status();
  };
  for (const char* name : {"pi", "pi-1-2"}) {
    const std::string why(issue(Role::kAgent, name).message());
    EXPECT_NE(why.find("agent/pi-1"), why.npos) << why;
    EXPECT_EQ(lab_.authority()
                  .MakeToken({.role = Role::kAgent, .name = name}, now_,
                             kTokenLife, "t")
                  .status()
                  .code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(Why(Join(Token({.role = Role::kAgent}), name)).find("agent/pi-1"),
              std::string::npos);
  }
  for (const char* name : {"pi-2", "pi1", "p", "pi-10"}) {
    EXPECT_TRUE(issue(Role::kAgent, name).ok()) << name;
  }
  // Others serve no devices.
  EXPECT_TRUE(issue(Role::kServer, "pi").ok());
  // Nor does one that is gone; but only an operator may decide that.
  ASSERT_TRUE(lab_.authority().Revoke("agent/pi-1", "", now_, "t").ok());
  EXPECT_TRUE(issue(Role::kAgent, "pi-1-2").ok());
  EXPECT_FALSE(Join(Token({.role = Role::kAgent}), "pi-1-3").ok());
}

TEST_F(AuthorityTest, TheLogIsReadOnFromWhereItWas) {
  const std::string path = lab_.authority_dir() + "/authority.jsonl";
  ASSERT_TRUE(Join(Token({.role = Role::kAgent, .name = "a"}), "a").ok());
  // Damage to what was taken in already is noticed by who reads it anew alone.
  std::string bytes = ReadFile(path);
  const size_t at = bytes.find("\"event\"");
  std::fstream(path, std::ios::in | std::ios::out)
          .seekp(static_cast<std::streamoff>(at))
      << "XXXXXXX";
  EXPECT_EQ(lab_.authority().List(now_)->size(), 1u);
  EXPECT_EQ(Authority::Open(lab_.authority_dir()).status().code(),
            absl::StatusCode::kDataLoss);
  // Another file in its place, as from a backup, is read from its beginning.
  WriteFile(path + ".backup", "");
  std::filesystem::rename(path + ".backup", path);
  EXPECT_EQ(lab_.authority().List(now_)->size(), 0u);
  // A shorter one is not one that was appended to.
  ASSERT_TRUE(lab_.authority()
                  .MakeToken({.role = Role::kAgent}, now_, kTokenLife, "t")
                  .ok());
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(lab_.authority().List(now_).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(AuthorityTest, TheAuthoritysKeyIsItsOwnersAlone) {
  const std::string path = lab_.authority_dir() + "/ca.key";
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  const auto opened = Authority::Open(lab_.authority_dir());
  EXPECT_NE(opened.status().message().find("chmod 600"),
            opened.status().message().npos)
      << opened.status().message();
}

TEST(JoinTokenTest, ComesFromAFileToo) {
  TempDir dir;
  const JoinToken token = JoinToken::Make(std::string(64, 'f'));
  const std::string path = dir.path() + "/token";
  WriteFile(path, token.Text() + "\n");
  const auto read = JoinToken::Read("@" + path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->secret, token.secret);
  EXPECT_EQ(JoinToken::Read(token.Text())->secret, token.secret);
  WriteFile(path, std::string(5000, 'x'));
  EXPECT_EQ(JoinToken::Read("@" + path).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const auto none = JoinToken::Read("@" + path + ".none");
  EXPECT_NE(none.status().message().find(path), none.status().message().npos);
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
