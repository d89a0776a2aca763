"""Does a reply notice that its question rests on something false or unknowable?"""
