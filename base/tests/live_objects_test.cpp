// Counts of live objects by type; references to objects, and their types.
#include "base/live_objects.h"

#include <gtest/gtest.h>

#include <list>
#include <string>

#include "base/budget.h"

namespace halyard {
namespace {

std::string counts(const LiveObjects& objects) {
  std::string text;
  objects.each([&](const ObjectType& type, uint64_t live, uint64_t made) {
    text += std::string(type.name) + ' ' + std::to_string(live) + ' ' + std::to_string(made) + '\n';
  });
  return text;
}

constexpr ObjectType kFirst = {"first", nullptr};
constexpr ObjectType kSecond = {"second", nullptr};

TEST(LiveObjectsTest, AreCountedByTypeInTheOrderOfTheirFirst) {
  LiveObjects objects;
  EXPECT_EQ(counts(objects), "");
  objects.add(kSecond, 1);
  objects.add(kFirst, 3);
  objects.add(kSecond, -1);
  objects.add(kFirst, -1);
  objects.add(kFirst, 1);
  EXPECT_EQ(counts(objects), "second 0 1\nfirst 3 4\n");
}

TEST(LiveObjectsTest, MoreTypesThanThereIsRoomForAreNotCounted) {
  LiveObjects objects;
  std::list<ObjectType> types;
  for (int i = 0; i < 20; ++i) objects.add(types.emplace_back(ObjectType{"type", nullptr}), 1);
  size_t count = 0;
  objects.each([&](const ObjectType&, uint64_t live, uint64_t) { count += live; });
  EXPECT_EQ(count, 16u);
}

TEST(LiveObjectsTest, OfAChargeAreThoseOfItsBudget) {
  const auto objects = std::make_shared<LiveObjects>();
  const auto counting = make<Budget>(1000, objects);
  Charge charge(counting);
  charge.count(kFirst, 2);
  charge.count(kFirst, -1);
  EXPECT_EQ(counts(*objects), "first 1 2\n");
  Charge(make<Budget>(1000)).count(kFirst, 1);
  Charge().count(kFirst, 1);
  EXPECT_EQ(counts(*objects), "first 1 2\n");
}

TEST(ChargeGrowsTo, WhatItDoesNotHaveYet) {
  const auto budget = make<Budget>(100);
  Charge charge(budget);
  EXPECT_TRUE(charge.grow_to(60, "a thing"));
  EXPECT_TRUE(charge.grow_to(60, "a thing"));
  EXPECT_EQ(budget->used(), 60u);
  EXPECT_FALSE(charge.grow_to(101, "a thing"));
  EXPECT_EQ(budget->used(), 60u);
  EXPECT_TRUE(charge.grow_to(100, "a thing"));
  EXPECT_EQ(budget->used(), 100u);
  Charge none;
  EXPECT_TRUE(none.grow_to(1000, "a thing"));
  EXPECT_EQ(none.bytes(), 0u);
}

struct Cat final : ObjectOf<Cat> {
  static const ObjectType kType;
};
struct Dog final : ObjectOf<Dog> {
  static const ObjectType kType;
};
const ObjectType Cat::kType = object_type<Cat>("cat");
const ObjectType Dog::kType = object_type<Dog>("dog");

TEST(ObjectTest, ACastKnowsItsTypeAlone) {
  const auto cat = make<Cat>();
  EXPECT_EQ(cast<Cat>(cat.get()), cat.get());
  EXPECT_EQ(cast<Dog>(cat.get()), nullptr);
  EXPECT_EQ(cast<Cat>(nullptr), nullptr);
}

int destroyed = 0;
struct Counted final : Object {
  Counted() : Object(&kType) {}
  static const ObjectType kType;
};
const ObjectType Counted::kType = {"counted", [](Object* object) {
                                     ++destroyed;
                                     delete static_cast<Counted*>(object);
                                   }};

TEST(ObjectTest, LivesAsLongAsAReference) {
  destroyed = 0;
  Ref<Counted> first = make<Counted>();
  EXPECT_TRUE(first->unique());
  Ref<Counted> second = first;
  EXPECT_EQ(first->references(), 2u);
  first = nullptr;
  EXPECT_EQ(destroyed, 0);
  EXPECT_TRUE(second->unique());
  retain(second.get());
  release(second.get());
  retain(nullptr);
  release(nullptr);
  second = Ref<Counted>::share(second.get());
  EXPECT_EQ(destroyed, 0);
  second = nullptr;
  EXPECT_EQ(destroyed, 1);
}

// A part has no reference at first, and destroys itself as often as its last one goes.
struct PartOfCounted final : Object {
  PartOfCounted() : Object(&kType, Part()) {}
  using Object::retain_first;
  static const ObjectType kType;
};
const ObjectType PartOfCounted::kType = {"part", [](Object*) { ++destroyed; }, true};

TEST(ObjectTest, APartComesBack) {
  destroyed = 0;
  PartOfCounted part;
  for (int i = 1; i <= 2; ++i) {
    EXPECT_TRUE(part.retain_first());
    EXPECT_FALSE(part.retain_first());
    part.release();
    EXPECT_EQ(destroyed, i - 1);
    part.release();
    EXPECT_EQ(destroyed, i);
    EXPECT_EQ(part.references(), 0u);
  }
}

}  // namespace
}  // namespace halyard
