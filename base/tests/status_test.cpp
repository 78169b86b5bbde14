// Statuses: codes from outside, what a text holds, copies that change apart; exceptions and errors of the
// system as statuses.
#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "base/c_boundary.h"
#include "base/system_error.h"
#include "status_testing.h"

namespace halyard {
namespace {

TEST(Codes, HaveNamesAndOthersAreUnknown) {
#define HALYARD_EXPECT_NAME_(number, expected)              \
  EXPECT_STREQ(name(static_cast<Code>(number)), #expected); \
  EXPECT_EQ(Status(static_cast<Code>(number), "").text(), #expected);
  HALYARD_STATUS_CODES(HALYARD_EXPECT_NAME_)
#undef HALYARD_EXPECT_NAME_
  for (const int number : {-1, 19, 1000}) {
    EXPECT_STREQ(name(static_cast<Code>(number)), "UNKNOWN") << number;
    EXPECT_EQ(Status(static_cast<Code>(number), "").text(), "UNKNOWN") << number;
  }
}

TEST(Codes, OfAFailureAreNeverSuccess) {
  for (const uint32_t number : {0u, 17u, 19u, UINT32_MAX})
    EXPECT_EQ(failure_code(number), Code::UNKNOWN) << number;
  for (const uint32_t number : {1u, 2u, 16u, 18u})
    EXPECT_EQ(static_cast<uint32_t>(failure_code(number)), number);
}

TEST(Codes, OfTheSystemsErrors) {
  for (const int number : {ENOENT, ENOTDIR}) EXPECT_EQ(code_of_errno(number), Code::NOT_FOUND) << number;
  for (const int number : {EACCES, EPERM})
    EXPECT_EQ(code_of_errno(number), Code::PERMISSION_DENIED) << number;
  for (const int number : {ENAMETOOLONG, ELOOP})
    EXPECT_EQ(code_of_errno(number), Code::INVALID_ARGUMENT) << number;
  for (const int number : {EIO, ENOSPC, ENOMEM, 0})
    EXPECT_EQ(code_of_errno(number), Code::UNAVAILABLE) << number;
}

TEST(StatusTest, SuccessHasNoTextAndTakesNoNotes) {
  const Status status =
      Status(Code::OK, "a message").note("a note").caused_by(Status(Code::ABORTED, "a cause"));
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::OK);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.text(), "OK");
}

TEST(StatusTest, TheTextHasEverything) {
  EXPECT_EQ(Status(Code::ABORTED, "").text(), "ABORTED");
  const Status status = Status(Code::NOT_FOUND, "no file")
                            .note("first")
                            .note("second")
                            .caused_by(Status(Code::DATA_LOSS, "cut"));
  EXPECT_EQ(status.message(), "no file");
  EXPECT_EQ(status.text(), "NOT_FOUND; no file; first; second\n  caused by: DATA_LOSS; cut");
}

TEST(StatusTest, ACopyDoesNotSeeLaterNotes) {
  const Status first(Code::NOT_FOUND, "no file");
  Status second = first;
  second = std::move(second).note("of the second").caused_by(Status(Code::ABORTED, "why"));
  EXPECT_EQ(first.text(), "NOT_FOUND; no file");
  EXPECT_EQ(second.text(), "NOT_FOUND; no file; of the second\n  caused by: ABORTED; why");
  const Status third = second;  // with its notes and its cause
  EXPECT_EQ(third.text(), second.text());
}

TEST(StatusTest, IsOwnedOnceAcrossTheBoundary) {
  halyard_status_t handle = Status(Code::ABORTED, "a message").release();
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(Status::adopt(handle).text(), "ABORTED; a message");
  EXPECT_EQ(Status().release(), nullptr);
  EXPECT_TRUE(Status::adopt(nullptr).ok());
}

TEST(StatusTest, NotesOfResults) {
  EXPECT_EQ(with_note(Result<int>(3), "a note").value(), 3);
  const Result<int> failed = with_note(Result<int>(fail(Code::ABORTED, "no {}", 4)), "a note");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text(), "ABORTED; no 4; a note");
  EXPECT_TRUE(to_status(Result<>()).ok());
  EXPECT_OK(to_result(Status()));
  EXPECT_FAILS(ABORTED, "again", to_result(to_status(Result<>(fail(Code::ABORTED, "again")))));
}

template <typename Exception>
Status thrown(const Exception& exception) {
  return outcome_of([&]() -> Result<> { throw exception; });
}

TEST(Boundary, ExceptionsAreStatuses) {
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "out of host memory", thrown(std::bad_alloc()));
  EXPECT_FAILS(INTERNAL, "a bug", thrown(std::runtime_error("a bug")));
  EXPECT_FAILS(INTERNAL, "an exception of an unknown type", thrown(3));
  EXPECT_FAILS(INTERNAL, "opening",
               thrown(std::system_error(std::make_error_code(std::errc::bad_file_descriptor), "opening")));
  const Status owner =
      thrown(std::system_error(std::make_error_code(std::errc::owner_dead), "made before fork()"));
  EXPECT_EQ(owner.text(), "FAILED_PRECONDITION; made before fork()");  // without the text of the number
}

TEST(Boundary, ResultsPass) {
  EXPECT_EQ(guarded([]() -> Result<> { return {}; }), nullptr);
  EXPECT_FAILS(ABORTED, "no", Status::adopt(guarded([]() -> Result<> { return fail(Code::ABORTED, "no"); })));
}

}  // namespace
}  // namespace halyard
