// SPDX-License-Identifier: Apache-2.0
// Objects that count who refers to them and end with the last Reference. That is what std::shared_ptr does, but its
// header would be a sixth of the time that the file of a kernel takes to compile. As there, several threads may have
// References to one object.
#pragma once
#include <concepts>
#include <utility>

namespace ikat {

/// What References refer to.
class Counted {
public:
    Counted() = default;
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    virtual ~Counted() = default;

private:
    friend class AnyReference;
    long references_ = 0;
};

/// What the References to all types have in common.
class AnyReference {
public:
    AnyReference() = default;
    explicit AnyReference(Counted* object);
    AnyReference(const AnyReference& other) : AnyReference(other.object_) {}
    AnyReference(AnyReference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    AnyReference& operator=(AnyReference other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~AnyReference();

    explicit operator bool() const { return object_ != nullptr; }

protected:
    Counted* object_ = nullptr;
};

template <class T>
class Reference : public AnyReference {
public:
    Reference() = default;
    explicit Reference(T* object) : AnyReference(object) {}
    template <std::derived_from<T> U>
    Reference(const Reference<U>& other) : AnyReference(other) {}

    T* get() const { return static_cast<T*>(object_); }
    T& operator*() const { return *get(); }
    T* operator->() const { return get(); }
};

template <std::derived_from<Counted> T, class... A>
Reference<T> make_reference(A&&... arguments) {
    return Reference<T>(new T(std::forward<A>(arguments)...));
}

}  // namespace ikat
